"""Inputs that change by steps, as of a valve: they are held, and no solver steps over a jump."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgf import System
from lgf.expression.frame import Frame
from lgf.solver.forcing import Forcing
from lgf.solver.reference import solve_by_reference
from lgf.solver.solve import solve

T = np.linspace(0.0, 12.0, 61)
RELAXATION = System.read("u' = -u + F")


def switched(t, levels, every):
    return np.repeat(np.asarray(levels, float), every)[: len(t)]


def exact(t, held, start):
    """The solution of u' = -u + F with F held from sample to sample."""
    u = np.empty(len(t))
    u[0] = start
    for k in range(len(t) - 1):
        u[k + 1] = held[k] + (u[k] - held[k]) * np.exp(-(t[k + 1] - t[k]))
    return u


@given(st.lists(st.sampled_from([-1.0, 0.0, 2.0, 2.5]), min_size=13, max_size=13))
@settings(max_examples=40, deadline=None)
def test_both_solvers_follow_a_held_input_exactly(levels):
    held = switched(T, levels, 5)
    forcing = Forcing.from_samples(T, held)
    if not forcing.has_steps:
        assert np.ptp(held) == 0.0
        return
    expected = exact(T, held, 0.3)
    for rtol in (1e-3, 1e-6):
        np.testing.assert_allclose(solve(RELAXATION, (0.3,), T, forcing, rtol=rtol).u, expected, atol=20 * rtol)
    np.testing.assert_allclose(solve_by_reference(RELAXATION, (0.3,), T, forcing).u, expected, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_a_random_binary_signal_is_held_although_it_may_change_at_every_sample(seed):
    held = np.random.default_rng(seed).choice([-1.0, 1.0], len(T))
    forcing = Forcing.from_samples(T, held)
    assert forcing.has_steps
    np.testing.assert_allclose(solve(RELAXATION, (0.3,), T, forcing, rtol=1e-6).u, exact(T, held, 0.3), atol=2e-5)
    np.testing.assert_allclose(solve_by_reference(RELAXATION, (0.3,), T, forcing).u, exact(T, held, 0.3), atol=1e-8)


def test_times_may_be_seconds_since_1970():
    late = 1.7e9 + T
    held = switched(T, [0, 1] * 7, 5)
    u = solve(RELAXATION, (0.3,), late, Forcing.from_samples(late, held), rtol=1e-6, max_steps=500).u
    np.testing.assert_allclose(u, exact(T, held, 0.3), atol=1e-5)


def test_the_rate_at_a_jump_is_that_of_the_new_level():
    held = switched(T, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0], 5)
    forcing = Forcing.from_samples(T, held)
    np.testing.assert_array_equal(forcing.values(T[:-1]), held[:-1])
    fast = solve(RELAXATION, (0.3,), T, forcing)
    slow = solve_by_reference(RELAXATION, (0.3,), T, forcing)
    np.testing.assert_allclose(fast.du, slow.du, atol=1e-6)
    np.testing.assert_allclose(fast.du[:-1], (held - fast.u)[:-1], atol=1e-9)


def test_times_that_were_rounded_are_equally_spaced():
    t = np.linspace(0.0, 60.0, 300)
    held = switched(t, [0, 1] * 15, 10)
    rounded = Forcing.from_samples(np.round(t, 3), held)
    np.testing.assert_allclose(rounded.jumps(), Forcing.from_samples(t, held).jumps(), atol=1e-3)


def test_irregular_times_are_met_to_a_small_part_of_their_spacing():
    t = np.cumsum(np.random.default_rng(0).uniform(0.1, 0.4, 80))
    held = switched(t, [0, 3, 1, 2] * 4, 5)
    jumps = Forcing.from_samples(t, held).jumps()
    np.testing.assert_allclose(jumps, t[5::5][: len(jumps)], atol=0.1 / 32)


@pytest.mark.parametrize("signal", [
    np.sin(T),
    np.round(np.sin(0.2 * T), 2),  # slow and rounded: small steps
    np.where((T > 3) & (T < 4.5), np.sin((T - 3) * np.pi / 1.5), 0.0),  # a pulse
    np.ones(61),
    np.eye(61)[7],  # a blow of one sample
    np.eye(61)[[7, 30]].sum(0),  # two blows
])  # fmt: skip
def test_other_inputs_are_interpolated(signal):
    forcing = Forcing.from_samples(T, signal)
    assert not forcing.has_steps
    assert len(forcing.jumps()) == 0
    np.testing.assert_allclose(forcing.values(T), signal, atol=1e-9)


def test_two_inputs_of_which_one_jumps():
    system = System.read("u' = -u + a + b", frame=Frame((("u", 1),), ("a", "b")))
    held = switched(T, [0, 1] * 7, 5)
    inputs = {"a": Forcing.from_samples(T, held), "b": Forcing.from_samples(T, np.cos(T))}
    fast, slow = solve(system, (0.0,), T, inputs), solve_by_reference(system, (0.0,), T, inputs)
    np.testing.assert_allclose(fast.u, slow.u, atol=1e-6)


@pytest.mark.parametrize(("times", "near"), [(T, 1e-5), (np.r_[T[:40], T[40:] + 0.13], 0.01)])
def test_the_last_sample_is_held_at_its_time_and_after_it(times, near):
    held = switched(T, [0, 1] * 6 + [0], 5)  # the last sample is the first of its level
    assert held[-1] != held[-2]
    forcing = Forcing.from_samples(times, held, held=True)
    np.testing.assert_array_equal(forcing.values([times[-1], times[-1] + 5.0]), held[-1])
    longer = np.r_[times, times[-1] + np.arange(1.0, 4.0)]
    expected = exact(longer, np.r_[held, [held[-1]] * 3], 0.3)
    for t in (times, longer):
        for found in (
            solve(RELAXATION, (0.3,), t, forcing, rtol=1e-7),
            solve_by_reference(RELAXATION, (0.3,), t, forcing),
        ):
            np.testing.assert_allclose(found.u, expected[: len(t)], atol=near)
            np.testing.assert_allclose(found["u'"][-1], held[-1] - found.u[-1], atol=1e-8)
