#!/usr/bin/env python3
"""The host pool as memory that the (simulated) driver makes and exports: several users, trainers,
agent restarts, a missing driver.

    usage: driver_slabs_test.py --build BUILD [unittest arguments]
"""
import os
import signal
import struct

import agent_test
import job_test
import share_test
import users_test

MIB = 1 << 20


class DriverFixture(share_test.ShareFixture):
    has_driver = True

    def configure(self, more="", **settings):
        super().configure(more.replace("[host]\n", "[host]\ndriver_slabs = true\n"), **settings)

    def start(self, **environment):
        driver = agent_test.BUILD / "simulator/libcuda.so.1" if self.has_driver else "/nowhere/libcuda.so.1"
        return super().start(SPILLWAY_DRIVER=str(driver), SPILLWAY_SIM_PROFILE="h200", **environment)

    def assert_drivers(self, pool):
        self.assertEqual(pool["backend"], "driver", self.log())
        self.assertGreater(pool["driver_bytes"], 0)


class TrainerTest(DriverFixture):
    def test_evicted_memory_lies_in_the_drivers_memory_until_the_job_ends(self):
        self.begin_swapping()
        self.start()
        job = self.begin(job_test.ENDLESS, *self.follow())
        self.assert_drivers(self.await_pool(lambda pool: pool["leased_bytes"] > 4 * share_test.SLAB))

        self.assert_as_bare(self.finish(job))
        self.assertGreater(self.report()["host_slab_peak_bytes"], 0)
        self.assertEqual(self.statistics()["violations"], [])
        self.await_pool(lambda pool: pool["leased_bytes"] == pool["kept_bytes"] == pool["ending_bytes"] == 0)
        self.assertIn('spillway_pool_backend{backend="driver"} 1', self.get("/metrics")[1])

    def test_a_killed_jobs_slabs_become_free(self):
        self.begin_swapping()
        self.start()
        job = self.begin(job_test.ENDLESS, *self.follow())
        self.await_pool(lambda pool: pool["leased_bytes"] > 0)
        os.kill(int(self.tenancy()["job"].removeprefix("local-")), signal.SIGKILL)
        self.await_pool(lambda pool: pool["leased_bytes"] == pool["kept_bytes"] == pool["ending_bytes"] == 0)
        job.wait()


class WithoutDriverTest(DriverFixture):
    has_driver = False

    def test_slabs_are_files_without_a_driver_and_that_is_reported(self):
        self.begin_swapping()
        self.start()
        job = self.begin(job_test.ENDLESS, *self.follow())
        pool = self.await_pool(lambda pool: pool["leased_bytes"] > 0)

        self.assertEqual((pool["backend"], pool["driver_bytes"]), ("file", 0))
        self.assertIn("slabs are files from now on, not the driver's memory: no driver", self.log())
        self.assert_as_bare(self.finish(job))


class OlderJobTest(DriverFixture):
    def test_an_older_client_gets_no_driver_slabs(self):
        self.configure(share_test.HOST)
        self.start()
        older = agent_test.Session(self.path)
        older.hello(newest=4)
        older.say(agent_test.HELD_SLABS, struct.pack("<BI", 1, 0))
        older.register(agent_test.GIB)
        said = b""
        while not said or struct.unpack_from("<H", said, 6)[0] != agent_test.GRANT:
            said = older.socket.recv(300)
        _, serial, budget = struct.unpack_from("<IQq", said, 16)
        older.obey(serial, budget)
        # Only holders of device memory get slabs.
        older.say(agent_test.USAGE, struct.pack("<IBB10q", 0, 1, 3, agent_test.GIB, budget, *[0] * 8))
        older.say(agent_test.ASK_SLABS, struct.pack("<Iq", 0, 4 * share_test.SLAB))

        self.assert_drivers(self.await_pool(lambda pool: pool["making_bytes"] == 0 and pool["unused_bytes"] > 0))
        self.assertEqual(self.pool()["leased_bytes"], 0)


class RestartTest(DriverFixture, share_test.RestartTest):
    """The tests of the pool of files, with jobs that hold the driver's memory."""

    def begin_with_slabs(self, **environment):
        begun = super().begin_with_slabs(**environment)
        self.assert_drivers(self.pool())
        return begun


class UsersTest(DriverFixture, users_test.UsersFixture):
    slab_bytes = 2 * MIB  # the driver's granule
    slab_file = "memfd:simulated-block device=0 on_host=1"

    def test_no_user_sees_another_users_bytes_under_random_kills(self):
        self.poison_and_kill()
        self.assertNotIn("slabs are files", self.log())


if __name__ == "__main__":
    agent_test.main()
