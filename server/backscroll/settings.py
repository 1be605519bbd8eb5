"""What can be set from outside: each field is also the variable `BACKSCROLL_<NAME>`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Every setting with its default; what the command line gives wins over the environment."""

    model_config = SettingsConfigDict(env_prefix="BACKSCROLL_", extra="ignore")

    agent: str = Field("demo", description="The agent to serve, as module:attribute.")
    host: str = Field("127.0.0.1", description="The address to listen on.")
    port: int = Field(8000, ge=0, le=65535, description="The port; 0 takes a free one.")
    data_dir: Path = Field(
        Path("data"), description="Where the embedded Valkey keeps the conversations."
    )
    workers: int = Field(1, ge=1, le=64, description="How many worker processes share the port.")
    redis_url: str = Field("", description="A Redis to use instead of the embedded Valkey.")
    key_prefix: str = Field("bs", min_length=1, description="What every Redis key begins with.")
    appendfsync: Literal["everysec", "always"] = Field(
        "everysec", description="How often the embedded Valkey flushes to disk."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="What goes to the server's own log."
    )

    allowed_origins: tuple[str, ...] = Field(
        (), description="Origins besides the server's own that may call it from a browser."
    )
    allowed_hosts: tuple[str, ...] = Field(
        (), description="Host names besides those of loopback under which it is called."
    )
    compression: bool = Field(False, description="Compress WebSocket frames.")

    max_input_bytes: int = Field(8 * 1024 * 1024, ge=1024, description="Largest request or frame.")
    max_messages: int = Field(10_000, ge=1, description="Most messages in one request.")
    max_frame: int = Field(
        1_000_000, ge=65_536, description="Largest WebSocket frame sent, unless the peer says more."
    )
    sse_max_frame: int = Field(8_000_000, ge=65_536, description="Largest SSE event sent.")
    client_result_chars: int = Field(
        200_000,
        ge=1000,
        description="Longest tool result shown to clients; the store has it whole.",
    )
    context_bytes: int = Field(65_536, ge=0, description="Most text of context entries together.")

    keepalive_s: float = Field(20, gt=0, description="Silence after which a connection is pinged.")
    send_timeout_s: float = Field(
        30, gt=0, description="How long one frame may take to be written."
    )
    idle_s: float = Field(300, gt=0, description="Idle time after which a socket is closed.")
    drain_s: float = Field(10, ge=0, description="How long runs may go on after a stop signal.")
    thread_ttl_s: float = Field(
        0, ge=0, description="How long a thread is kept after its last write; 0 is for ever."
    )
    lease_s: float = Field(15, ge=1, description="How long a worker's right to a run lasts.")
    run_seconds: float = Field(600, gt=0, description="How long a run may take.")
    supersede_wait_s: float = Field(
        5, ge=0, description="How long a request waits for a run that is stopping."
    )
    active_runs: int = Field(200, ge=1, description="Most runs at once on one worker.")
    feeds_per_socket: int = Field(64, ge=1, description="Most threads watched by one socket.")

    coalesce_ms: float = Field(15, ge=0, description="How long deltas are gathered.")
    coalesce_deltas: int = Field(16, ge=1, description="How many deltas are gathered at most.")
    show_reasoning: bool = Field(True, description="Show clients the model's readable reasoning.")
    client_timeline: Literal["off", "brief", "full"] = Field(
        "brief", description="How much of the timeline clients see."
    )
