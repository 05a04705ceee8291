//! Logarithms and powers of 64-bit floats as Terraform has them, which takes those of Go's library: their last bit is not always that of others. Only what a
//! broken power takes of the exponential function is the machine's.

/// The natural logarithm, by the method of FreeBSD's `e_log.c`: `x = 2^k * (1 + f)`, and a polynomial for `log(1 + f)`.
pub(super) fn logarithm(x: f64) -> f64 {
    // Coefficients of the polynomial, and the logarithm of 2 in two parts.
    const L1: f64 = 6.666_666_666_666_735e-1;
    const L2: f64 = 3.999_999_999_940_942e-1;
    const L3: f64 = 2.857_142_874_366_239e-1;
    const L4: f64 = 2.222_219_843_214_978_4e-1;
    const L5: f64 = 1.818_357_216_161_805e-1;
    const L6: f64 = 1.531_383_769_920_937_3e-1;
    const L7: f64 = 1.479_819_860_511_658_6e-1;
    const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    if x <= 0.0 || !x.is_finite() {
        return x.ln();
    }
    let (mut fraction, mut k) = parts(x);
    if fraction < std::f64::consts::FRAC_1_SQRT_2 {
        fraction *= 2.0;
        k -= 1;
    }
    let f = fraction - 1.0;
    let k = f64::from(k);
    let s = f / (2.0 + f);
    let (s2, s4) = (s * s, s * s * (s * s));
    let odd = s2 * (L1 + s4 * (L3 + s4 * (L5 + s4 * L7)));
    let even = s4 * (L2 + s4 * (L4 + s4 * L6));
    let half = 0.5 * f * f;
    k * LN2_HIGH - ((half - (s * (half + (odd + even)) + k * LN2_LOW)) - f)
}

/// `x` to the power of `y`: whole powers by squaring, what is left of `y` by the logarithm.
pub(super) fn power(x: f64, y: f64) -> f64 {
    let (whole, rest) = (y.abs().trunc(), y.abs().fract());
    // Where there is one answer only, or none.
    if x == 0.0
        || !x.is_finite()
        || y.abs() <= 1.0 && rest == 0.0
        || y.abs() == 0.5
        || rest != 0.0 && x < 0.0
        || whole >= 9e18
        || !y.is_finite()
    {
        return match y {
            0.5 => x.sqrt(),
            -0.5 => 1.0 / x.sqrt(),
            _ => x.powf(y),
        };
    }
    let (whole, rest) = if rest > 0.5 { (whole + 1.0, rest - 1.0) } else { (whole, rest) };
    let mut result = if rest == 0.0 { 1.0 } else { (rest * logarithm(x)).exp() };
    let (mut square, mut exponent) = parts(x);
    let mut result_exponent = 0i32;
    #[allow(clippy::cast_possible_truncation)]
    let mut left = whole as i64;
    while left != 0 {
        if exponent.abs() > 1 << 12 {
            // Out of what a float can be, one way or the other.
            result_exponent = result_exponent.saturating_add(exponent);
            break;
        }
        if left & 1 == 1 {
            result *= square;
            result_exponent += exponent;
        }
        square *= square;
        exponent *= 2;
        if square.abs() < 0.5 {
            square *= 2.0;
            exponent -= 1;
        }
        left >>= 1;
    }
    if y < 0.0 {
        (result, result_exponent) = (1.0 / result, -result_exponent);
    }
    scaled(result, result_exponent)
}

/// A float from 0.5 to 1 and a power of two that give `x`, which is finite and not zero.
fn parts(x: f64) -> (f64, i32) {
    let (x, more) = if x.is_subnormal() { (x * 2f64.powi(52), -52) } else { (x, 0) };
    let bits = x.to_bits();
    let exponent = i32::try_from(bits >> 52 & 0x7ff).unwrap_or(0) - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent + more)
}

/// `x * 2^exponent`; the steps are so that nothing is rounded twice, but for results too small for all bits.
fn scaled(x: f64, exponent: i32) -> f64 {
    let exponent = exponent.clamp(-4000, 4000);
    let (x, left) = (0..4).fold((x, exponent), |(x, left), _| {
        let step = left.clamp(-1000, 1000);
        (x * 2f64.powi(step), left - step)
    });
    x * 2f64.powi(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_every_library_but_for_the_last_bit() {
        for x in [0.1, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 10.0, 1e10, 1e300, 1e-300, 5e-324] {
            assert!((logarithm(x) - x.ln()).abs() <= x.ln().abs() * 4e-16, "{x}");
            for y in [-3.0, -1.5, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 2.0, 2.7, 7.0, 30.0] {
                let (own, other) = (power(x, y), x.powf(y));
                assert!(own == other || (own - other).abs() <= other.abs() * 1e-13, "{x} to the power of {y}: {own} and {other}");
            }
        }
        for (x, y) in [(0.0, -1.0), (-2.0, 3.0), (2.0, 1e300), (0.5, 1e300), (2.0, -5000.0), (-8.0, 0.5), (1.0, 1e18)] {
            let (own, other) = (power(x, y), f64::powf(x, y));
            assert!(own == other || own.is_nan() && other.is_nan(), "{x} to the power of {y}: {own} and {other}");
        }
        assert!(logarithm(0.0) == f64::NEG_INFINITY && logarithm(-1.0).is_nan() && logarithm(f64::INFINITY) == f64::INFINITY);
    }
}
