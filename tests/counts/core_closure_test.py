#!/usr/bin/env python3
"""That core_closure.py sees what must not be there."""
import unittest
from pathlib import Path

import core_closure

RECORD = """base/base.o: #deps 3, deps mtime 1 (VALID)
    ../base/time.h
    ../base/time.cc
    /usr/include/stdio.h

agent/agent.o: #deps 1, deps mtime 1 (VALID)
    ../agent/machine/machine.h
"""


class Closure(unittest.TestCase):
    def test_reads_what_ninja_has_recorded(self):
        self.assertEqual(core_closure.files_read(RECORD), {"../base/time.h", "../base/time.cc", "/usr/include/stdio.h",
                                                           "../agent/machine/machine.h"})

    def test_ours_are_below_the_root_and_not_generated(self):
        root = core_closure.ROOT
        files = {"../base/time.h", "/usr/include/stdio.h", "proto/agent_link.pb.h", "../base/notes.txt"}
        self.assertEqual(core_closure.own_files(files, Path(root / "build-core")), {"base/time.h"})

    def test_names_headers_and_files_that_the_core_must_not_need(self):
        foreign = ["/usr/include/grpcpp/server.h", "/usr/include/python3.11/Python.h", "proto/control.grpc.pb.h",
                   "build-core/proto/etcd.pb.h", "/usr/lib/x86_64-linux-gnu/mpich/include/mpi/mpi.h"]
        of_products = ["warm/warm_starts.h", "operator/control/control.h", "diagnosis/stacks/memory.h", "daemon/jobs.h",
                       "agent/pmi/pmi_desk.h", "rendezvous/ledger/etcd_client.h"]
        self.assertEqual(core_closure.intruders(set(foreign), set(of_products)), sorted(foreign + of_products))
        self.assertEqual(core_closure.intruders({"/usr/include/google/protobuf/message_lite.h"},
                                                {"agent/node/diagnosis.h", "rendezvous/ledger/etcd_files.h"}), [])


if __name__ == "__main__":
    unittest.main()
