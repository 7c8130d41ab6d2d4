"""Numbers that programs in Python share with programs in C, and with the guides."""

import inspect
import math
import re
from pathlib import Path

import numpy as np
import pytest

import modurob as mr
from modurob import firmware
from modurob.distributed import child, drive, native, plant, processes, reliable
from modurob.distributed.balancing import agent as balancing
from modurob.distributed.balancing import laws, on_ground, result, stance, standing, support
from modurob.distributed.balancing import plant as drives
from modurob.distributed.balancing import processes as balancing_processes
from modurob.distributed.balancing.network import BalancingModules
from modurob.distributed.balancing.on_ground import StandingModules
from modurob.distributed.balancing.standing import StandingAgent
from modurob.distributed.balancing.standing_processes import StandingProcesses
from modurob.distributed.bus import builder as bus_builder
from modurob.distributed.bus import (
    bus,
    coordinator,
    links,
    messages,
    node,
    operation,
    robot,
    simulated,
)
from modurob.distributed.bus.survey import BusEntry
from modurob.distributed.mass import agent as mass
from modurob.distributed.mass import module_body, network
from modurob.distributed.mass import processes as mass_processes
from modurob.distributed.mass import state as mass_state
from modurob.distributed.transports import base, secure, udp

ROOT = Path(__file__).parents[2]
FIRMWARE = ROOT / "src" / "modurob" / "firmware"
DEFINE = re.compile(
    r"^#define (?:MR_BUS_|MR_MASS_|MR_)?([A-Z_]+) (?:MR_C\()?([-\d.e]+)[UL)]*(?:\s|$)", re.M
)


def defined(*paths: str) -> dict[str, float]:
    """Numbers that C sources define, by name without the prefix."""
    text = "".join((FIRMWARE / path).read_text("utf-8") for path in paths)
    return {name: float(value) for name, value in DEFINE.findall(text)}


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("src/bus_links.c", {
            "SILENCE": links.SILENCE, "RETRIES": links.RETRIES, "EAGER": links.EAGER,
        }),
        ("src/bus_links.h", {"HELLOS": links.HELLOS}),
        ("src/bus_node.c", {
            name: getattr(node, name)
            for name in (
                "STALE", "LEAP", "LIFETIME", "REFRESH", "GATHER", "LATE_S", "LATE_PERIODS",
                "PATIENCE", "HOLD_STEP_S",
            )
        }),
        ("src/coordinator.c", {
            "PATIENCE": coordinator.PATIENCE, "EXPIRY": coordinator.EXPIRY,
            "LIFETIME": node.LIFETIME,
        }),
        ("src/coordinator_robot.c", {
            "LARGEST_READING": robot.LARGEST_READING, "STALE_S": operation.STALE_S,
            "STALE_PERIODS": operation.STALE_PERIODS, "HOLD_RATE": operation.HOLD_RATE,
        }),
        ("src/coordinator_motion.c", {
            "APPROACH_S": operation.APPROACH_S, "NEAR": operation.NEAR,
            "SHORTEST_S": operation.MOTIONS_S[0], "LONGEST_S": operation.MOTIONS_S[1],
        }),
        ("src/mass.c", {"LIGHTEST": module_body.LIGHTEST}),
        ("include/modurob/mass.h", {
            "CONTACT": mass_state.CONTACT_NUMBERS, "SUMS": mass_state.SUM_NUMBERS,
        }),
        ("src/balance.c", {
            "SAME_PLANE": balancing.SAME_PLANE, "SAME_NORMAL": balancing.SAME_NORMAL,
            "AT_LIMIT": laws.AT_LIMIT,
        }),
        ("include/modurob/bus.h", {
            "VERSION": messages.VERSION, "LARGEST_TEXT": base.LARGEST_LABEL,
            "LARGEST_FRAME": messages.LARGEST_FRAME, "CHUNK": messages.CHUNK,
            "FRAME_HEADER": messages.HEADER.size, "SECURE_HEADER": secure.HEADER.size,
            "TAG_BYTES": secure.TAG_BYTES, "LEAST_KEY": secure.LEAST_KEY_BYTES,
            "COUNTER_WINDOW": secure.COUNTER_WINDOW, "MOST_PER_S": base.MOST_PER_S,
            "MAX_JOINTS": drive.MOST_JOINTS,
        }),
    ],
)  # fmt: skip
def test_programs_in_c_have_the_same_numbers(path, values):
    found = defined(path)
    assert {name: found[name] for name in values} == values


def test_programs_in_c_have_the_same_codes():
    """Kinds of frames and messages, subjects of requests, presence of neighbors."""
    text = (FIRMWARE / "include/modurob/bus.h").read_text("utf-8")
    found = {name: int(x, 0) for name, x in re.findall(r"\bMR_([A-Z_]+) = (0x\w+|\d+)", text)}
    for prefix, codes in (
        ("FRAME_", messages.FrameKind), ("BUS_", messages.Kind), ("BUS_WANTED_", messages.Wanted),
        ("BUS_", messages.Status),
    ):  # fmt: skip
        assert {code.name: found[prefix + code.name] for code in codes} == {
            code.name: code.value for code in codes
        }


def test_programs_in_c_on_a_pc_have_the_limits_of_the_protocol():
    sizes = native.SIZES
    assert sizes["MR_BUS_MAX_PORTS"] == messages.MOST_PORTS
    assert sizes["MR_BUS_MAX_RECORD"] == messages.LARGEST_RECORD
    assert sizes["MR_BUS_MAX_MODULES"] == messages.MOST_MODULES
    assert sizes["MR_BUS_WINDOW"] == reliable.WINDOW


def test_programs_in_c_on_a_pc_have_room_for_what_their_robots_may_send():
    sizes, most = native.SIZES, native.COORDINATOR_SIZES
    assert sizes["MR_BUS_WAITING_BYTES"] == 4 * messages.LARGEST_RECORD
    assert sizes["MR_BUS_READING_BYTES"] == 64 * messages.MOST_MODULES  # as in bus.h
    assert sizes["MR_BUS_BATCH_BYTES"] == sizes["MR_BUS_MAX_BATCHES"] * messages.LARGEST_FRAME
    assert sizes["MR_BUS_MAX_BATCHES"] == 16 * messages.MOST_PORTS
    # a kind and a new record for each module, and room for those that start again
    assert most["MR_MAX_KINDS"] == most["MR_MAX_MODULES"]
    assert most["MR_BUS_WAITING_BYTES"] == most["MR_MAX_MODULES"] * most["MR_BUS_MAX_RECORD"]
    assert most["MR_BUS_MAX_ENTRIES"] == 8 * most["MR_MAX_MODULES"]
    assert most["MR_MAX_PARTS"] == firmware.LARGEST
    assert most["MR_MAX_KIND_PORTS"] == messages.MOST_PORTS


GUIDES = {
    name: (ROOT / "docs/guide" / f"{name}.md").read_text("utf-8") for name in ("bus", "balance")
}
STATED = [  # guide, what it says, the numbers
    ("bus", "Five times a heartbeat (0.25 s) a module sends a hello",
     {links.HELLOS: 5, node.HEARTBEAT_S: 0.25}),
    ("bus", "not heard for two and a half heartbeats is silent", {links.SILENCE: 2.5}),
    ("bus", "that owes 16,384 acknowledgments counts as silent", {links.MOST_WAITING: 16384}),
    ("bus", "**Numbers** have 32 bits", {reliable.NUMBERS: 1 << 32}),
    ("bus", "a number more than 2¹⁶ ahead of the first missing one are ignored",
     {reliable.WINDOW: 65536}),
    ("bus", "refused for eight heartbeats after the newest one was accepted", {node.LIFETIME: 8}),
    ("bus", "Every 20 heartbeats a module sends its report", {node.REFRESH: 20}),
    ("bus", "counts for 28 heartbeats (7 s) at most",
     {node.LIFETIME + node.REFRESH: 28, 28 * node.HEARTBEAT_S: 7}),
    ("bus", "up to 0.4 heartbeats later", {node.GATHER: 0.4}),
    ("bus", "ends by itself after 20 heartbeats", {node.STALE: 20}),
    ("bus", "after three heartbeats goes on without those", {coordinator.PATIENCE: 3}),
    ("bus", "not heard for 60 heartbeats are dropped", {coordinator.EXPIRY: 60}),
    ("bus", "finite and at most 10⁶ in size", {robot.LARGEST_READING: 1e6}),
    ("bus", "a length byte and up to 64 bytes of UTF-8", {base.LARGEST_LABEL: 64}),
    ("bus", "a frame of at most 4096 bytes", {messages.LARGEST_FRAME: 4096}),
    ("bus", "| 4096 bytes of payload | `LARGEST_PAYLOAD`", {base.LARGEST_PAYLOAD: 4096}),
    ("bus", "| 20,000 payloads a second from a neighbor | `MOST_PER_S`", {base.MOST_PER_S: 20000}),
    ("bus", "| 256 datagrams read in one go | `MOST_AT_ONCE`", {base.MOST_AT_ONCE: 256}),
    ("bus", "| 16 payloads that wait for a handshake | `MOST_WAITING`", {base.MOST_WAITING: 16}),
    ("bus", "| 1024 newest counters | `COUNTER_WINDOW`", {secure.COUNTER_WINDOW: 1024}),
    ("bus", "| 4096 modules | `MOST_MODULES`", {messages.MOST_MODULES: 4096}),
    ("bus", "| records of 1 MiB, in pieces of 1 KiB | `LARGEST_RECORD`, `CHUNK`",
     {messages.LARGEST_RECORD: 1 << 20, messages.CHUNK: 1 << 10}),
    ("bus", "| 64 MiB of all records | `LARGEST_MEMORY`", {coordinator.LARGEST_MEMORY: 64 << 20}),
    ("bus", "a key of at least 16 bytes", {secure.LEAST_KEY_BYTES: 16}),
    ("bus", "| up to 4098 | those that left the sender together", {base.LARGEST_CONTENT: 4098}),
    ("bus", "| label | 2 to 65 |", {
        1 + base.LARGEST_LABEL: 65, base.LARGEST: 65 + 8 + 8 + 8 + 4098 + 16,
    }),
    ("bus", "| tag | 16 | the first half of the HMAC-SHA256", {secure.TAG_BYTES: 16}),
    ("bus", "within a second after its parent has changed", {child.LONGEST_WAIT_S: 1}),
    ("bus", "is approached for half a second",
     {operation.APPROACH_S: 0.5}),
    ("bus", "and for a motion of more than a minute also while it runs", {operation.CHECKED_S: 60}),
    ("bus", "its readings are older than 0.1 s", {operation.STALE_S: 0.1}),
    ("bus", "the coordinator's clock (2 ms by default, `--period`)", {bus.PERIOD_S: 0.002}),
    ("bus", "it sends what it has after one and a half periods", {node.PATIENCE: 1.5}),
    ("bus", "A module that gets no cycle for 0.1 s holds its joints", {node.LATE_S: 0.1}),
    ("bus", "a cycle of at most two periods ago", {operation.MOST_LATE: 2}),
    ("bus", "is the worst of the last 500 cycles", {operation.KEPT_CYCLES: 500}),
    ("bus", "a message passes ten links a period", {simulated.LINKS_IN_PERIOD: 10}),
    ("bus", "has not written for 0.1 s return no reading", {drive.STALE_S: 0.1}),
    ("bus", "that get no torque for 0.1 s are released", {plant.WATCHDOG_S: 0.1}),
    ("bus", "| 64, 96, 16 KiB |", {
        native.COORDINATOR_SIZES["MR_MAX_MODULES"]: 64,
        native.COORDINATOR_SIZES["MR_MAX_JOINTS"]: 96,
        native.COORDINATOR_SIZES["MR_BUS_MAX_RECORD"]: 16 << 10,
    }),
    ("bus", "| 32; 255, 32. Modules beyond these sizes are left out", {
        tuple(
            native.COORDINATOR_SIZES[f"MR_MAX_{name}"]
            for name in ("KIND_BODIES", "KIND_JOINTS", "TURNS", "MATES")
        ): (32, 32, 255, 32),
    }),
    ("balance", "With a heartbeat of 0.1 s a dead process is noticed",
     {mass_processes.HEARTBEAT_S: 0.1}),
    ("balance", "its neighbors count it as gone after 0.25 s", {mass.GIVE_UP: 0.25}),
    ("balance", "81 bytes of mass; 17 more bytes and 56 a contact where modules are on the ground, "
     "96 for the frame, 40 for the sums", {
        8 * mass_state.CONTACT_NUMBERS: 56, 8 * mass_state.SUM_NUMBERS: 40,
    }),
    ("balance", "PID (10, 0.1, 1e-4, a thousand times a second)",
     {laws.KP: 10, laws.KI: 0.1, laws.KD: 1e-4, balancing.PERIOD_S: 1e-3}),
    ("balance", "ω = 25/s", {balancing.RATE: 25}),
    ("balance", "where the center will be in `1 / 2ω`", {laws.Shared(7.0, 9.81).braking: 0.5}),
    ("balance", "Here it is 0.3 N m s/rad, with at most 6 N m",
     {drives.GearedDrive().friction: 0.3, drives.GearedDrive().torque: 6}),
    ("balance", "below a tenth of the first distance until the run ends", {result.REACHED: 0.1}),
    ("balance", "for at least the last 0.2 s", {result.STAYS: 0.2}),
    ("balance", "the clock has a period of 10 ms, with a decision every second tick",
     {balancing_processes.PERIOD_S: 0.01, balancing_processes.DECISION: 2}),
    ("balance", "the body runs at a quarter of real time", {balancing_processes.SPEED: 0.25}),
    ("balance", "on the base, within 50 ms", {on_ground.PUSH_S: 0.05}),
    ("balance", "the base tilts by more than 30 degrees", {on_ground.TILTED: math.radians(30)}),
    ("balance", "the center sinks to half its height", {on_ground.SUNK: 0.5}),
    ("balance", "landed within 15 mm of its shift, and no other sole moved by 15 mm",
     {(on_ground.STEP_TOLERANCE, on_ground.SLIPPED): (0.015, 0.015)}),
    ("balance", "**Servos** hold the joints (60 N m/rad", {on_ground.STIFFNESS: 60}),
    ("balance", "Every 20 ms the modules measure and exchange a message",
     {on_ground.TICK * balancing.PERIOD_S: 0.02}),
    ("balance", "than 2 % of the weight", {standing.TOUCHES: 0.02}),
    ("balance", "each foot carries at least 15 % of the weight", {stance.SHARE: 0.15}),
    ("balance", "by more than 5 mm keeps its new place", {standing.SLIP_M: 0.005}),
]  # fmt: skip


@pytest.mark.parametrize(("guide", "sentence", "numbers"), STATED, ids=lambda x: str(x)[:40])
def test_numbers_are_those_of_the_guides(guide, sentence, numbers):
    assert sentence in " ".join(GUIDES[guide].split())
    for found, stated in numbers.items():
        assert found == stated


@pytest.mark.parametrize(
    ("law", "scaled_by", "c0", "c1"),
    [
        ("default", "nothing", 1.0, 0.0),
        ("distance", "distance", 0.0, 0.1),
        ("momentum", "momentum", 0.0, 1.0),
    ],
)
def test_greedy_laws_have_the_constants_of_moll2006(law, scaled_by, c0, c1):
    assert laws.law_named(law, 0.08, 9.81, 25.0) == laws.Greedy(scaled_by, c0, c1, 0.08)


DEFAULTS = [
    (StandingModules, {"stiffness": 60, "margin": 0.015, "gravity": 9.81, "friction": 1}),
    (StandingAgent, {"margin": 0, "steps": (), "frame": None}),
    (StandingAgent.in_contact, {"body": 0}),
    (StandingProcesses, {"speed": 0.25}),
    (result.Balanced, {"law": "", "width": 1, "lost": 0, "seconds": 0}),
    (on_ground.Stood, {"feet": (), "steps": (), "lost": frozenset()}),
    (StandingProcesses.run, {"record": 0.02}),
    (BalancingModules, {"law": "shared", "gravity": 9.81, "stuck": ()}),
    (support.Region.contains, {"margin": 0}),
    (support.Region.nearest, {"margin": 0}),
    (support.Region.keep_inside, {"margin": 0}),
    (support.stability_region, {"sides": 16}),
    (stance.stance, {"starts": 30, "steps": ()}),
    (bus.Bus, {"heartbeat": 0.25, "period": 0.002, "plant": None}),
    (bus.Bus.plug, {"turn": 0}),
    (coordinator.Coordinator, {"heartbeat": 0.25}),
    (coordinator.Coordinator.start, {"beat": 1}),
    (operation.Operation, {"period": 0}),
    (operation.Operation.torques, {"cycle": 0}),
    (operation.Operation.follow, {"seconds": math.inf, "what": "follow"}),
    (processes.Processes, {"transport": "udp", "loss": 0, "seed": 0}),
    (processes.Processes.start, {"native": ""}),
    (base.Endpoint, {"loss": 0, "rng": None, "sock": None}),
    (udp.Udp, {"host": "127.0.0.1"}),
    (reliable.Channel.post, {"latest": False}),
    (mass.MassAgent, {"resend": 0.01, "give_up": 0.25, "heartbeat": None, "tickets": 2**63}),
    (mass.MassAgent.in_contact, {"body": 0}),
    (network.MassNetwork, {"period": 0.001}),
    (network.MassNetwork.settle, {"most": 10_000}),
    (network.MassNetwork.touch, {"friction": 1, "body": None}),
    (mass_state.decode_update, {"sums": 5}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "documented"), DEFAULTS, ids=lambda x: getattr(x, "__qualname__", "")
)
def test_defaults_are_the_documented_ones(function, documented):
    found = {p.name: p.default for p in inspect.signature(function).parameters.values()}
    for name, value in documented.items():
        assert type(found[name]) is type(value) or type(found[name]) is not bool
        assert found[name] == value, name


def test_states_begin_with_nothing():
    state = mass_state.MassState(1, *np.zeros((3, 2)))
    assert (state.ticket, state.contact_body, state.announced) == ((0, 0), 0, False)
    assert state.contacts.shape == (0, 7)
    assert state.sums.tolist() == [0.0] * 5
    standing_state = StandingAgent(mr.catalog["superbot"], 2, period=0.02).started(
        {}, np.random.default_rng(0)
    )
    assert (standing_state.phase, standing_state.since, standing_state.step) == ("stand", 0.0, 0)
    assert (standing_state.known, standing_state.complete, standing_state.touching) == (0, 0, 0)
    newest, waits = reliable.Newest(), reliable.Retry(0.1, 0.2)
    assert (newest.number, newest.at, waits.constant) == (0, -math.inf, 0)
    assert vars(base.Counts()) == dict.fromkeys(vars(base.Counts()), 0)
    push = plant.Push(1.0)
    assert (push.joint, push.torque, push.module, push.force) == ("", 0.0, "", ())
    assert plant.Plant().t == 0.0
    entry = BusEntry()
    assert (entry.cycle, entry.heard_at, entry.has_reading) == (0, -math.inf, False)
    assert messages.UNKNOWN == (0, 0)
    assert mass_state.NO_CANDIDATE == (0, 0, 0)


def test_gravity_points_down():
    assert bus_builder.GRAVITY == (0.0, 0.0, -9.81)
