import sys, time, json, functools, dataclasses, jax, jax.numpy as jnp, numpy as np
from cascade.config import *; from cascade.specs import *; from cascade.types import *
from cascade.world import model as W; from cascade.explore import disagreement as D
from cascade.nn.learner import Learner
small = "--small" in sys.argv
def setup(cfg, B=16,T=50,img=64,ens=True,K=20):
    spec=EnvSpec("x",{"image":ObservationSpec("image",(img,img,3))},ActionSpec("discrete",18))
    m=Learner.create(W.WorldModel(spec,cfg,key=jax.random.key(0)),cfg.optimizer)
    e=D.create(cfg,18,EnsembleConfig(members=10),key=jax.random.key(1))
    ks=jax.random.split(jax.random.key(2),4)
    b=Batch({"image":jax.random.randint(ks[0],(K,B,T,img,img,3),0,255).astype(jnp.uint8)},jax.random.randint(ks[1],(K,B,T),0,18),jax.random.uniform(ks[2],(K,B,T))<.02,jax.random.uniform(ks[3],(K,B,T))<.02)
    def one(s,x):
        m,e=s; b,k=x
        m,st,me=W.step(m,b,k)
        if ens: e,me2=D.step(e,st,W.encode_action(spec.action,b.action),b.is_first)
        return (m,e),me["loss"]
    @functools.partial(jax.jit,donate_argnums=0)
    def many(s,b,key): return jax.lax.scan(one,s,(b,jax.random.split(key,K)))
    return (m,e),b,many
def bench(name,cfg,reps=4,K=20,**kw):
    s,b,f=setup(cfg,K=K,**kw)
    t=time.time(); s,l=f(s,b,jax.random.key(0)); jax.block_until_ready(l); c=time.time()-t
    ts=[]
    for i in range(reps):
        t=time.time(); s,l=f(s,b,jax.random.key(i)); jax.block_until_ready(l); ts.append((time.time()-t)/K*1e3)
    print(f"{name:40s} {np.median(ts):8.2f} ms (min {min(ts):.2f}) compile {c:.1f}s loss {float(l[0]):.1f}->{float(l[-1]):.1f}",flush=True)
base=WorldConfig() if not small else WorldConfig(deter=64,hidden=64,stoch=8,classes=8,cnn_depth=4,precision="float32")
R=dataclasses.replace
kw=dict(K=2,B=2,T=5,reps=1) if small else {}
for u in ([1] if small else [1,5,10,25]): bench(f"wm+ens unroll={u}",R(base,unroll=u),**kw)
bench("wm only unroll=10",R(base,unroll=10),ens=False,**kw)
bench("wm f32 unroll=10",R(base,unroll=10,precision="float32"),**kw)
bench("wm T=10 B=80 unroll=10",R(base,unroll=10),**(kw or dict(T=10,B=80)))
