"""Motions that excite all base parameters: Fourier series within limits, chosen by search."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from modurob.checks import Numbers, generator, per_joint, positive, whole
from modurob.errors import StateError, choices
from modurob.gaits import Gait, Reference
from modurob.gaits.body import within_limits
from modurob.identification.parameters import parameter_set
from modurob.model import Model
from modurob.quintic import Curve

REACH = np.pi / 2, 0.1  # [rad], [m] largest swing where limits leave more
RAMP = 0.1  # of the duration, from rest to full swing
SAMPLES = 40  # per harmonic, at which limits are checked; information is summed over every second
MARGIN = 0.97  # of velocity and torque limits: peaks lie between samples
NOISE = 0.05  # of each joint's torque, and
RATE_HZ = 100.0  # of the samples that the information is computed for
DATASHEET_ERROR = 0.3  # as `identify` assumes
STEP, GROW, SHRINK = 0.3, 1.3, 0.95  # of the search: a fifth of the trials should improve
ROUNDING = 1e-9  # of the largest torque: less is none
HALVINGS = 12  # of the swing, in search of the largest that torque limits allow


class FourierSeries(Gait):
    """``w_i = sum_k s_ki sin(k omega t) + c_ki cos(k omega t)``, scaled to at most 1.

    Args:
        joints, amplitude, offset, ramp: As of every gait.
        coefficients: (harmonics, 2, n) s and c.
        period: Of the first harmonic. [s]
    """

    name = "fourier"

    def __init__(
        self,
        joints: Sequence[str],
        amplitude: Numbers,
        *,
        coefficients: np.ndarray,
        period: float,
        offset: Numbers = 0.0,
        ramp: float = 0.0,
    ) -> None:
        super().__init__(joints, amplitude, offset=offset, ramp=ramp)
        self._period, self.coefficients = period, coefficients
        points = SAMPLES * len(coefficients)
        t = period * np.arange(points) / points
        # between samples a trigonometric polynomial is at most this much larger (Ehlich, Zeller)
        peak = np.abs(self.swing(t)[0]).max(axis=0) / np.cos(np.pi / SAMPLES)
        self.coefficients = coefficients / np.where(peak > 0, peak, 1.0)

    @property
    def period(self) -> float:
        """Seconds after which the motion repeats."""
        return self._period

    @property
    def duration(self) -> float:
        """Seconds from rest to the end of the first period in full swing."""
        return self.ramp + self.period

    def swing(self, t: np.ndarray) -> Curve:
        rate = 2 * np.pi / self.period * np.arange(1, len(self.coefficients) + 1)
        angle = t[:, None] * rate
        sine, cosine = np.sin(angle), np.cos(angle)
        s, c = self.coefficients[:, 0], self.coefficients[:, 1]
        first = (rate * cosine) @ s - (rate * sine) @ c
        return Curve(sine @ s + cosine @ c, first, -(rate**2 * sine) @ s - (rate**2 * cosine) @ c)


def exciting_motion(
    model: Model,
    duration: float = 10.0,
    *,
    harmonics: int = 5,
    amplitude: Numbers | None = None,
    velocity: Numbers = np.inf,
    torque: Numbers = np.inf,
    trials: int = 200,
    rng: np.random.Generator | None = None,
) -> FourierSeries:
    """A motion from which `identify` learns most about the datasheets of a body.

    Maximizes log det of the information about all base parameters, torques weighted by their size,
    by random search among motions that keep all limits with the datasheets' numbers.

    Args:
        model: On a fixed base, built from an organism.
        duration: A tenth of it to come into full swing, then one period. [s]
        harmonics: Of the Fourier series of each joint.
        amplitude: Largest swing; by default 90 degrees or 0.1 m, or up to the next limit. [rad, m]
        velocity, torque: Limits, for all joints or each. [rad/s, m/s; N m, N]
        trials: Motions that are tried.
        rng: For the search; a fixed seed by default.
    """
    if model.organism is None or model.nv == 0 or model.free_base or _virtual(model):
        raise StateError(
            "an exciting motion moves the joints of an organism on a fixed base, got "
            f"{model!r} with the joints {choices(model.joint_names) or 'none'}"
        )
    rng, joints = generator(rng, seed=0), model.joint_names
    length, trials = positive("duration", duration, "seconds"), whole("trials", trials, 1)
    harmonics = whole("harmonics", harmonics, 1)
    usual = np.where(model.prismatic, REACH[1], REACH[0])
    offset, swing = within_limits(model, None, usual if amplitude is None else amplitude)
    limits = [
        MARGIN * per_joint(name, x, joints, least=0.0, infinite=True, otherwise=np.inf)
        for name, x in (("velocity", velocity), ("torque", torque))
    ]
    _check_rest(model, offset, limits[1])
    ramp, period = RAMP * length, (1 - RAMP) * length
    t = np.linspace(0.0, length, SAMPLES * harmonics)

    def made(c: np.ndarray) -> FourierSeries:
        motion = FourierSeries(
            joints, swing, offset=offset, coefficients=c, period=period, ramp=ramp
        )
        motion.amplitude = swing * _share(model, motion, t, *limits)
        return motion

    decay = 1 / np.arange(1, harmonics + 1)[:, None, None]
    c = rng.standard_normal((harmonics, 2, len(joints))) * decay
    c /= np.abs(c).max()
    best = made(c)
    information = _Information(model, best(t[::2]), RATE_HZ * length)
    most, step = information(best(t[::2])), STEP
    for _ in range(trials - 1):
        tried = c + step * rng.standard_normal(c.shape) * decay
        motion = made(tried)
        value = information(motion(t[::2]))
        if value > most:
            best, most, c, step = motion, value, tried / np.abs(tried).max(), step * GROW
        else:
            step *= SHRINK
    return best


class _Information:
    """Log det of what the torques of a motion tell about x, in addition to the datasheets.

    The noise is a share of the torques of the `first` motion: with a share of their own, motions
    with small torques would look precise.
    """

    def __init__(self, model: Model, first: Reference, samples: float) -> None:
        assert model.organism is not None
        self._parameters = parameter_set(model, model.organism, shared=False)
        tau = model.inverse_dynamics(*first)
        torque = np.sqrt(np.mean(tau**2, axis=0))
        felt = torque > ROUNDING * torque.max()  # an upright axis that rests feels none
        noise = NOISE * np.where(felt, torque, torque.max() or 1.0)
        self._scale = DATASHEET_ERROR * np.sqrt(samples / len(tau)) / noise[:, None]
        self._slope = self._parameters.theta_derivative(np.zeros(self._parameters.size))

    def __call__(self, motion: Reference) -> float:
        J = self._scale * (self._parameters.columns(*motion) @ self._slope)
        J = J.reshape(-1, J.shape[-1])
        return float(np.linalg.slogdet(np.eye(J.shape[1]) + J.T @ J)[1])


def _virtual(model: Model) -> bool:
    return any(name.startswith("world.") for name in model.joint_names)


def _check_rest(model: Model, offset: np.ndarray, torque: np.ndarray) -> None:
    held = np.abs(model.gravity_torque(offset))
    if np.any(held >= torque):
        k = int(np.argmax(held / torque))
        raise StateError(
            f"joint '{model.joint_names[k]}' needs {held[k]:.4g} N m or N to hold still at "
            f"{offset[k]:.3g}; the torque limit is {torque[k] / MARGIN:.4g}"
        )


def _share(
    model: Model, motion: FourierSeries, t: np.ndarray, velocity: np.ndarray, torque: np.ndarray
) -> np.ndarray:
    """(n,) share of the swing that keeps the limits; torques scale all joints together."""
    q, v, a = motion(t)
    fast = np.abs(v).max(axis=0)
    share = np.minimum(1.0, velocity / np.where(fast > 0, fast, 1.0))

    def within(part: float) -> bool:
        moved = (
            motion.offset + part * share * (q - motion.offset),
            part * share * v,
            part * share * a,
        )
        return bool(np.all(np.abs(model.inverse_dynamics(*moved)) <= torque))

    low, high = (1.0, 1.0) if within(1.0) else (0.0, 1.0)
    for _ in range(HALVINGS * (low < high)):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low * share
