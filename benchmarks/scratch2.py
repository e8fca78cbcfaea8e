import sys, time, functools, dataclasses, jax, jax.numpy as jnp, numpy as np
from cascade.config import *; from cascade.specs import *
from cascade.world.encoder import *; from cascade.world.decoder import *; from cascade.world.rssm import *
from cascade.nn.precision import cast
small="--small" in sys.argv
cfg=WorldConfig(unroll=10) if not small else WorldConfig(deter=64,hidden=64,stoch=8,classes=8,cnn_depth=4,precision="float32")
N=800 if not small else 10
K=20
spec=ObservationSpec("image",(64,64,3))
img=jax.random.randint(jax.random.key(0),(N,64,64,3),0,255).astype(jnp.uint8)
feat=jax.random.normal(jax.random.key(1),(N,feature_size(cfg)))
def timed(name,fn,*args):
    # repeat K times inside, carrying params to avoid hoisting
    @jax.jit
    def many(p,args):
        def body(p,_):
            g=jax.grad(lambda p: fn(cast(p,cfg.precision),*args))(p)
            return jax.tree.map(lambda a,b:a-1e-6*b,p,g),None
        return jax.lax.scan(body,p,None,length=K)[0]
    p=args[0]; t=time.time(); out=jax.block_until_ready(many(p,args[1:])); c=time.time()-t
    ts=[]
    for i in range(3):
        t=time.time(); jax.block_until_ready(many(p,args[1:])); ts.append((time.time()-t)/K*1e3)
    print(f"{name:45s} {np.median(ts):8.3f} ms  compile {c:.1f}",flush=True)
enc=ImageEncoder(spec,cfg,key=jax.random.key(2)); dec=ImageDecoder(feature_size(cfg),spec,cfg,key=jax.random.key(3))
timed("encoder s2d",lambda p,x: jax.vmap(p)(x).astype(jnp.float32).mean(),enc,img)
timed("decoder d2s",lambda p,f,x: jax.vmap(lambda f,x:p.loss(p(f),x))(f,x).mean(),dec,feat,img)
def enc_direct(p,x):
    x=x.astype(p.layers[0].kernel.dtype)/255.-.5
    for l in p.layers:
        x=jax.lax.conv_general_dilated(x,l.kernel,(2,2),"VALID",dimension_numbers=("NHWC","HWIO","NHWC"))+l.bias
        x=jax.nn.elu(x)
    return x.reshape(x.shape[0],-1)
timed("encoder direct",lambda p,x: enc_direct(p,x).astype(jnp.float32).mean(),enc,img)
def dec_direct(p,f,first=False):
    x=p.project(f)[:,None,None]
    for i,l in enumerate(p.layers):
        if i==0 and first: x=jnp.einsum("nc,hwco->nhwo",x[:,0,0],l.kernel)+l.bias
        else: x=jax.lax.conv_transpose(x,l.kernel,(2,2),"VALID",dimension_numbers=("NHWC","HWIO","NHWC"))+l.bias
        if i<len(p.layers)-1: x=jax.nn.elu(x)
    return x.astype(jnp.float32)
timed("decoder direct",lambda p,f,x: jnp.square(dec_direct(p,f)-x.astype(jnp.float32)/255.).sum()/N,dec,feat,img)
timed("decoder direct, matmul first",lambda p,f,x: jnp.square(dec_direct(p,f,True)-x.astype(jnp.float32)/255.).sum()/N,dec,feat,img)
B,T=(16,50) if not small else (2,5)
for u in ([1,10,25] if not small else [1]):
    c=dataclasses.replace(cfg,unroll=u)
    r=RSSM(enc.size,18,c,key=jax.random.key(4))
    emb=jax.random.normal(jax.random.key(5),(T,B,enc.size)).astype(c.precision); act=jax.random.normal(jax.random.key(6),(T,B,18)); fst=jnp.zeros((T,B),bool)
    def rl(p,emb,act,fst):
        n=p.noise(jax.random.key(0),T,B)
        s,st=p.observe(emb,act,fst,n); pr=p.prior(s.deter)
        return p.kl(st,pr).mean()+s.feature.astype(jnp.float32).mean()
    timed(f"rssm deferred unroll={u}",rl,r,emb,act,fst)
    from cascade.nn import recurrent
    def plain(step,layers,carry,xs,unroll=1): return jax.lax.scan(lambda c,x: step(lambda n,v:layers[n](v),c,x),carry,xs,unroll=unroll)[1]
    old=recurrent.scan; recurrent.scan=plain
    timed(f"rssm plain scan unroll={u}",rl,r,emb,act,fst)
    recurrent.scan=old
mlp=MLP(feature_size(cfg),1,4,400,key=jax.random.key(0))
timed("mlp head",lambda p,f: p(f).astype(jnp.float32).mean(),mlp,feat)
