"""DreamerV2's settings for each environment family: the world model's, and those of what acts in it."""

from cascade.config import ActorCriticConfig, OptimizerConfig, WorldConfig

WORLD: dict[str, WorldConfig] = {
    "minigrid": WorldConfig(unroll=5),
    "atari": WorldConfig(
        deter=600,
        hidden=600,
        kl_scale=0.1,
        discount_scale=5.0,
        unroll=5,
        optimizer=OptimizerConfig(lr=2e-4),
    ),
    "crafter": WorldConfig(layer_norm=True, unroll=5),
    "dmc": WorldConfig(
        deter=200,
        hidden=200,
        free_nats=1.0,
        discount_head=False,
        unroll=5,
        optimizer=OptimizerConfig(lr=3e-4),
    ),
}

AGENT: dict[str, ActorCriticConfig] = {
    "minigrid": ActorCriticConfig(entropy=3e-3),
    "atari": ActorCriticConfig(
        discount=0.999, entropy=1e-3, actor=OptimizerConfig(lr=4e-5), critic=OptimizerConfig(lr=1e-4)
    ),
    "crafter": ActorCriticConfig(
        discount=0.999, entropy=3e-3, actor=OptimizerConfig(lr=1e-4), critic=OptimizerConfig(lr=1e-4)
    ),
    "dmc": ActorCriticConfig(
        horizon=5, entropy=1e-4, actor=OptimizerConfig(lr=8e-5), critic=OptimizerConfig(lr=8e-5)
    ),
}
