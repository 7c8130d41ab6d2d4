"""A vector sine and cosine in LLVM IR.

Quadrant by rounding to a multiple of pi/2, remainder with pi/2 split over three doubles and fused
multiply-adds, then the minimax polynomials for |r| <= pi/4 of the fdlibm kernels (coefficients are
facts; error below 1 ulp). With the reduction the results stay within 2 ulp for |x| <= 1e6, the
working range of joint angles.
"""

from __future__ import annotations

from modurob.compiler.emit_llvm import FunctionWriter, splat

TWO_OVER_PI = 0.6366197723675814
ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the rounded integer in the low bits
PI_OVER_2 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
SINE = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
    2.75573137070700676789e-06,
    -2.50507602534068634195e-08,
    1.58969099521155010221e-10,
)
COSINE = (
    4.16666666666666019037e-02,
    -1.38888888888741095749e-03,
    2.48015872894767294178e-05,
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)


def write_sincos(writer: FunctionWriter, x: str) -> tuple[str, str]:
    """Lines that compute sin and cos of a vector; returns their SSA names."""
    W, V = writer.width, writer.vector
    integers = f"<{W} x i64>"

    def constant(value: float) -> str:
        return splat(value, W)

    def whole(value: int) -> str:
        return "<" + ", ".join([f"i64 {value}"] * W) + ">"

    def op(name: str, a: str, b: str) -> str:
        return writer.value(f"{name} {V} {a}, {b}")

    def fma(a: str, b: str, c: str) -> str:
        return writer.value(f"call {V} @llvm.fma.v{W}f64({V} {a}, {V} {b}, {V} {c})")

    def polynomial(z: str, z2: str, c: tuple[float, ...]) -> str:
        """Six coefficients in pairs (Estrin): half as long a chain of dependent operations."""
        low, middle, high = (fma(z, constant(c[k + 1]), constant(c[k])) for k in (0, 2, 4))
        return fma(z2, fma(z2, high, middle), low)

    biased = fma(x, constant(TWO_OVER_PI), constant(ROUNDER))
    turns = op("fsub", biased, constant(ROUNDER))
    quadrant = writer.value(f"bitcast {V} {biased} to {integers}")
    r = x
    for part in PI_OVER_2:
        r = fma(turns, constant(-part), r)
    z = op("fmul", r, r)
    z2 = op("fmul", z, z)
    sine = fma(op("fmul", r, z), polynomial(z, z2, SINE), r)
    half = op("fmul", z, constant(0.5))
    head = op("fsub", constant(1.0), half)
    tail = op("fsub", op("fsub", constant(1.0), head), half)
    cosine = op("fadd", head, fma(z2, polynomial(z, z2, COSINE), tail))

    odd = writer.value(f"and {integers} {quadrant}, {whole(1)}")
    swap = writer.value(f"icmp ne {integers} {odd}, {whole(0)}")
    next_quadrant = writer.value(f"add {integers} {quadrant}, {whole(1)}")

    def signed(size: str, turned: str) -> str:
        bit = writer.value(f"and {integers} {turned}, {whole(2)}")
        sign = writer.value(f"shl {integers} {bit}, {whole(62)}")
        bits = writer.value(f"bitcast {V} {size} to {integers}")
        flipped = writer.value(f"xor {integers} {bits}, {sign}")
        return writer.value(f"bitcast {integers} {flipped} to {V}")

    masks = f"<{W} x i1> {swap}"
    s = writer.value(f"select {masks}, {V} {cosine}, {V} {sine}")
    c = writer.value(f"select {masks}, {V} {sine}, {V} {cosine}")
    return signed(s, quadrant), signed(c, next_quadrant)
