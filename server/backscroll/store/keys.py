"""Where everything lives in Redis.

`bs` is the prefix and `{T}` the thread's key in braces, so that a thread is one cluster slot.
What belongs to a thread lives as long as it does, unless the table says otherwise.

| key | type | holds | written by |
|---|---|---|---|
| `bs:{T}:log` | stream | entries `<seq>-0`: t time, h head, b body, i batch | log scripts |
| `bs:{T}:meta` | hash | see below | log scripts, `renew`, `claim`, `stop` |
| `bs:{T}:messages` | list | msgpack `[seq, time, message]`, or nothing | history scripts |
| `bs:{T}:ids` | hash | id of a live message -> position, from 1 | history scripts |
| `bs:{T}:calls` | list | seq of every `call` entry | log scripts |
| `bs:{T}:blobs` | hash | sha256 -> bytes | `append`, `rewrite_history` |
| `bs:{T}:runs` | hash | `s:<run>` how a run started, `e:<run>` how it ended | `start`, `finish` |
| `bs:{T}:run` | string | what a takeover needs; until the run ends | `start`, `finish` |
| `bs:{T}:state` | string | shared state | `start`, `append` |
| `bs:{T}:pause` | hash | see below | `start`, `finish`, `decide`, pause store |
| `bs:{T}:compaction` | hash | gen, entry, failures, opened, overrides, `pin:<id>` | compaction |
| `bs:{T}:compaction:lease` | string | who makes a summary; until it expires | compaction store |
| `bs:{T}:activities` | list | JSON of what ended runs showed beside messages | `finish` |
| `bs:{T}:bell` | channel | what was appended, which run shall stop | log scripts, `stop` |

Fields of pause: open (the pause as JSON), id, said (messages behind its results), rev (counts
changes) · `q:<call>` what was asked and `d:<call>` what was decided, each behind its time ·
`t:<pause>` the run that went on with it.

History scripts are `start`, `history` and `rewrite_history`; log scripts are these, `append`,
`finish` and `decide`. A message's position is its place in the list for ever: that of one which
write-back replaced holds the summary, or nothing.

Fields of meta: seq, time, floor, epoch · fence, run, lease, worker, stop · owner, agent, title,
archived, created · last_run, last_status · pause (its id), questions (how many are open) · counts
`n_<kind>`, runs, errors, messages · revision, edits, superseded, rewritten (of the history) ·
whatever a writer of the log adds, such as model and context.

Indexes over all threads; they are rebuilt from the threads when lost:

| key | type | holds | written by |
|---|---|---|---|
| `bs:threads`, `bs:threads:<owner>` | zset | thread key by last activity | indexes |
| `bs:run:<owner>:<run>` | string | key of the run's thread; as long as the thread | indexes |
| `bs:leases` | zset | thread key by the time its lease expires | indexes |
| `bs:pauses` | zset | key of a paused thread by when it is to be looked at | indexes |
| `bs:workers` | hash | worker -> last sign of life; a minute without one | workers |
| `bs:models` | hash | provider, endpoint, model -> what was learned | compaction store |
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

LOCAL_OWNER = "local"
"""The one owner in single-user mode; its threads are named without it."""


@dataclass(frozen=True, slots=True)
class ThreadKey:
    """Which thread: the owner and the id its client chose."""

    owner: str
    thread_id: str

    @property
    def key(self) -> str:
        """The name for operators and in Redis: no two threads share it, no brace is in it."""
        thread = _quote(self.thread_id)
        return thread if self.owner == LOCAL_OWNER else f"{_quote(self.owner)}/{thread}"

    @property
    def tag(self) -> str:
        """The Redis hash tag, braces included."""
        return "{" + self.key + "}"

    @classmethod
    def from_key(cls, key: str) -> ThreadKey:
        """Read an operator's key; raises ValueError unless it is spelt as `key` spells it."""
        owner, slash, thread = key.rpartition("/")
        found = cls(_unquote(owner) if slash else LOCAL_OWNER, _unquote(thread))
        if not found.thread_id or not found.owner or found.key != key:
            raise ValueError(f"expected the key of a thread, got {key!r}")
        return found


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of all keys under one prefix."""

    prefix: str = "bs"

    def __post_init__(self) -> None:
        """Refuse a prefix that would move the hash tag."""
        if not self.prefix or "{" in self.prefix or "}" in self.prefix:
            raise ValueError(f"expected a key prefix without braces, got {self.prefix!r}")

    def log(self, thread: ThreadKey) -> str:
        """The stream of entries."""
        return self._of(thread, "log")

    def meta(self, thread: ThreadKey) -> str:
        """The hash with numbers, run, lease and title."""
        return self._of(thread, "meta")

    def messages(self, thread: ThreadKey) -> str:
        """The list of stored messages."""
        return self._of(thread, "messages")

    def ids(self, thread: ThreadKey) -> str:
        """The hash from message id to position."""
        return self._of(thread, "ids")

    def calls(self, thread: ThreadKey) -> str:
        """The list of the seqs of call entries."""
        return self._of(thread, "calls")

    def blobs(self, thread: ThreadKey) -> str:
        """The hash of bytes by their sha256."""
        return self._of(thread, "blobs")

    def compaction(self, thread: ThreadKey) -> str:
        """The hash of the compaction entry."""
        return self._of(thread, "compaction")

    def compaction_lease(self, thread: ThreadKey) -> str:
        """The claim on making a summary."""
        return self._of(thread, "compaction:lease")

    def runs(self, thread: ThreadKey) -> str:
        """The hash of how each run started and ended."""
        return self._of(thread, "runs")

    def run(self, thread: ThreadKey) -> str:
        """What a takeover of the active run needs."""
        return self._of(thread, "run")

    def state(self, thread: ThreadKey) -> str:
        """The shared state."""
        return self._of(thread, "state")

    def pause(self, thread: ThreadKey) -> str:
        """The hash of what a turn waits for, and of every question that was asked."""
        return self._of(thread, "pause")

    def activities(self, thread: ThreadKey) -> str:
        """The list of the activities of ended runs."""
        return self._of(thread, "activities")

    def bell(self, thread: ThreadKey) -> str:
        """The channel that carries what is appended."""
        return self._of(thread, "bell")

    def of_thread(self, thread: ThreadKey) -> list[str]:
        """Return every key of a thread, for deleting it."""
        parts = (
            self.log,
            self.meta,
            self.messages,
            self.ids,
            self.calls,
            self.blobs,
            self.compaction,
            self.compaction_lease,
            self.runs,
            self.run,
            self.state,
            self.pause,
            self.activities,
        )
        return [part(thread) for part in parts]

    def threads(self, owner: str | None = None) -> str:
        """The index of an owner's threads by last activity, or of all threads."""
        return f"{self.prefix}:threads" + ("" if owner is None else f":{_quote(owner)}")

    def run_index(self, owner: str, run_id: str) -> str:
        """The key that leads from a run id to its thread."""
        return f"{self.prefix}:run:{_quote(owner)}:{_quote(run_id)}"

    def leases(self) -> str:
        """The index of leases by expiry."""
        return f"{self.prefix}:leases"

    def pauses(self) -> str:
        """The index of paused threads by the time they are to be looked at."""
        return f"{self.prefix}:pauses"

    def workers(self) -> str:
        """The registry of workers."""
        return f"{self.prefix}:workers"

    def models(self) -> str:
        """What was learned about models."""
        return f"{self.prefix}:models"

    def thread_of(self, name: str) -> ThreadKey:
        """Read the thread out of the name of one of its keys; raises ValueError for other names."""
        before, brace, rest = name.partition("{")
        if before != f"{self.prefix}:" or not brace:
            raise ValueError(f"expected the name of a thread's key, got {name!r}")
        return ThreadKey.from_key(rest.partition("}")[0])

    def _of(self, thread: ThreadKey, part: str) -> str:
        return f"{self.prefix}:{thread.tag}:{part}"


def _quote(text: str) -> str:
    # A lone surrogate is kept apart from every other character, so two ids never share a key.
    quoted = quote(text, safe="", errors="surrogatepass")
    # A segment of dots alone would be taken out of a path by whoever sends it.
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def _unquote(text: str) -> str:
    return unquote(text, errors="surrogatepass")
