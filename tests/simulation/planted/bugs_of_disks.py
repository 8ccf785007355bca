"""Bugs in what is durable: files, folders, counts, plans, the spool."""

from tests.simulation.planted.bug import Bug

BUGS = (
    Bug(
        "unsynced_file", "A file gets its name before its content is on the disk.",
        "node_agent/host/replacing.py",
        "        disk.sync((temporary,))\n", "",
    ),
    Bug(
        "unsynced_folder", "A file's new name is not on the disk when its replacement counts as done.",
        "node_agent/host/replacing.py",
        "    disk.sync((path.parent,))\n", "",
    ),
    Bug(
        "unsynced_state_folder", "A new state directory's folders are not synced.",
        "node_agent/host/files/state_dir.py",
        "                self.disk.sync((folder,))\n", "                pass\n",
    ),
    Bug(
        "unsynced_spool", "Records are handed over that a power cut takes from the spool.",
        "node_agent/control/service.py",
        "        await self.spool_sync()\n        try:\n"
        "            for chunk in self.spool.chunks(held, self.spool.on_disk(until, held)):\n",
        "        try:\n            for chunk in self.spool.chunks(held, until):\n",
    ),
    Bug(
        "unsynced_segment", "The entry of a new segment of the spool is never synced.",
        "node_agent/control/spool/spool_files.py",
        "            self._unsynced.add(path.parent)\n", "            pass\n",
    ),
    Bug(
        "start_not_counted", "A start of a runtime is not counted on the disk.",
        "node_agent/host/files/starts.py",
        "        try:\n            self._write()\n        except OSError:\n",
        "        try:\n            pass\n        except OSError:\n",
    ),
    Bug(
        "plan_without_files", "The state names a plan whose local part was never stored.",
        "node_agent/control/plan_store.py",
        "            self.disk.replace(local_path(self.directory, hash_, core), local)\n", "            pass\n",
    ),
    Bug(
        "commit_before_write", "The runtime commits before the state is on the disk.",
        "node_agent/control/deploy_protocol.py",
        "        return self._write(durable, written)\n",
        "        told = [CommitInRuntime(known.hash, known.epoch, place) for place in known.places] if admits else []\n"
        "        return [*told, *self._write(durable, written)]\n",
    ),
    Bug(
        "commit_not_written", "A commit is answered and never written.",
        "node_agent/control/deploy_protocol.py",
        "        return self._write(durable, written)\n",
        "        self.durable = durable\n        return written(\"\")\n",
    ),
    Bug(
        "frees_too_much", "The spool frees a segment of which the coordinator holds a part.",
        "node_agent/control/spool/spool_protocol.py",
        "if segment.end <= records]\n", "if segment.first < records]\n",
    ),
    Bug(
        "taken_twice", "After a restart of control the spool takes records again that it has.",
        "node_agent/control/spool/spool_files.py",
        "        ring.cells[TAKEN] = min(incarnation.position * RECORD_BYTES, ring.cells[WRITTEN])\n", "",
    ),
    Bug(
        "failures_not_summed", "Of several writes to the spool that failed, only the last one's records count as lost.",
        "node_agent/control/spool/spool_protocol.py",
        "        self.incarnations[boot].dropped += append.count\n",
        "        self.incarnations[boot].dropped = append.count\n",
    ),
    Bug(
        "ring_not_checked", "The runtime overwrites records in the ring that nobody has read.",
        "node_agent/host/trace_ring.py",
        "        return self.ring.capacity - RESERVED * RECORD_BYTES - (written - self.cells[TAKEN])\n",
        "        return self.ring.capacity - RESERVED * RECORD_BYTES\n",
    ),
    Bug(
        "gap_left_out", "No record tells how many were dropped while the ring was full.",
        "node_agent/host/trace_ring.py",
        "        if self.dropping:\n            written = self._note_gap(written)\n",
        "        self.dropping = 0\n",
    ),
    Bug(
        "seal_before_records", "A dead incarnation is sealed before its last records are taken.",
        "node_agent/control/spool/spool_files.py",
        "        while data := _peek(ring, BLOCK_BYTES if whole_blocks and not closed else RECORD_BYTES):\n",
        "        while not closed and (data := _peek(ring, RECORD_BYTES)):\n",
    ),
)  # fmt: skip
