"""Kernels for RDNA4: which fused ones are used."""

import os

MARKER = "image"


def fuses_qkv_rmsnorm():
    return os.environ.get("R4D_GLM_FUSE_QKV_RMSNORM", "1") != "0"
