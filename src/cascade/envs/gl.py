"""Which OpenGL draws MuJoCo's pictures where there is no screen: EGL if it works here, else OSMesa.

MuJoCo and dm_control read MUJOCO_GL when they are imported, and what they choose by themselves needs a screen.
So it is set before; a value that the user has set is kept. Worker processes inherit it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

VARIABLE = "MUJOCO_GL"
NOTHING = "disabled"
"""The value with which both packages load without any OpenGL, and cannot draw."""
PACKAGES = "libegl1 libegl-mesa0 libgl1-mesa-dri libopengl0"
ADVICE = f"on Debian: apt-get install {PACKAGES} (or libosmesa6); or observe vectors: env.observation vector"


def choose() -> str:
    """Set MUJOCO_GL unless it is set, or a screen may do; its value."""
    if VARIABLE not in os.environ and sys.platform == "linux":
        if _egl_works():
            os.environ[VARIABLE] = "egl"
        elif _osmesa_works():
            os.environ[VARIABLE] = "osmesa"
        elif not os.environ.get("DISPLAY"):
            os.environ[VARIABLE] = NOTHING
    return os.environ.get(VARIABLE, "")


def _egl_works() -> bool:
    """Whether a device gives a display without a screen, which is what is asked for later."""
    try:
        ctypes.CDLL("libOpenGL.so.0")
        egl = ctypes.CDLL("libEGL.so.1")
    except OSError:
        return False
    pointer, integer = ctypes.c_void_p, ctypes.c_int
    egl.eglGetProcAddress.restype, egl.eglGetProcAddress.argtypes = pointer, [ctypes.c_char_p]
    query, display = (
        egl.eglGetProcAddress(name) for name in (b"eglQueryDevicesEXT", b"eglGetPlatformDisplayEXT")
    )
    if not query or not display:
        return False
    devices, count = (pointer * 16)(), integer(0)
    query_devices = ctypes.CFUNCTYPE(ctypes.c_uint, integer, ctypes.POINTER(pointer), ctypes.POINTER(integer))
    if not query_devices(query)(len(devices), devices, ctypes.byref(count)):
        return False
    get_display = ctypes.CFUNCTYPE(pointer, ctypes.c_uint, pointer, pointer)(display)
    egl.eglInitialize.argtypes = [pointer, pointer, pointer]
    platform_device = 0x313F  # EGL_PLATFORM_DEVICE_EXT
    displays = [get_display(platform_device, device, None) for device in devices[: count.value]]
    return any(found and egl.eglInitialize(found, None, None) for found in displays)


def _osmesa_works() -> bool:
    for name in ("libOSMesa.so.8", "libOSMesa.so"):
        with contextlib.suppress(OSError):
            ctypes.CDLL(name)
            return True
    return False
