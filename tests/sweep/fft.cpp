// Fourier transforms, and the complex views around them.
#include "sweep.h"

#include <ATen/ATen.h>

namespace tandem::sweep {

Rows fft_rows() {
  const Samples real = both(
      {{f({8})}, {f({3, 5})}, {f({4, 6}).t()}, {f({2, 7}).sliced()}, {f({3, 4}).expanded()}, {f({0, 4})}});
  const Samples complex =
      both({{c({8})}, {c({3, 5})}, {c({4, 6}).t()}, {c({2, 7}).sliced()}, {c({3, 4}).expanded()}});
  const Samples real_planes = both({{f({4, 6})}, {f({2, 3, 5})}, {f({4, 6}).t()}, {f({2, 4, 6}).expanded()}});
  const Samples complex_planes =
      both({{c({4, 6})}, {c({2, 3, 5})}, {c({4, 6}).t()}, {c({2, 4, 6}).expanded()}});
  const Samples pairs_of = both({{f({3, 2})}, {f({2})}, {f({4, 3, 2})}, {f({0, 2})}});
  return {
      {"fft_fft", complex, [](In x) { return at::fft_fft(x); }},
      {"fft_fft/real", real, [](In x) { return at::fft_fft(x); }},
      {"fft_fft/padded", complex, [](In x) { return at::fft_fft(x, 9, 0, "ortho"); }},
      {"fft_ifft", complex, [](In x) { return at::fft_ifft(x); }},
      {"fft_rfft", real, [](In x) { return at::fft_rfft(x); }},
      {"fft_rfft/norm", real_planes, [](In x) { return at::fft_rfft(x, 4, 0, "forward"); }},
      {"fft_irfft", complex, [](In x) { return at::fft_irfft(x); }},
      {"fft_irfft/odd", complex, [](In x) { return at::fft_irfft(x, 5); }},
      {"fft_hfft", complex, [](In x) { return at::fft_hfft(x); }},
      {"fft_ihfft", real, [](In x) { return at::fft_ihfft(x); }},
      {"fft_fft2", complex_planes, [](In x) { return at::fft_fft2(x); }},
      {"fft_ifft2", complex_planes, [](In x) { return at::fft_ifft2(x); }},
      {"fft_rfft2", real_planes, [](In x) { return at::fft_rfft2(x); }},
      {"fft_irfft2", complex_planes, [](In x) { return at::fft_irfft2(x); }},
      {"fft_hfft2", complex_planes, [](In x) { return at::fft_hfft2(x); }},
      {"fft_ihfft2", real_planes, [](In x) { return at::fft_ihfft2(x); }},
      {"fft_fftn", complex_planes, [](In x) { return at::fft_fftn(x); }},
      {"fft_ifftn", complex_planes, [](In x) { return at::fft_ifftn(x); }},
      {"fft_rfftn", real_planes, [](In x) { return at::fft_rfftn(x); }},
      {"fft_irfftn", complex_planes, [](In x) { return at::fft_irfftn(x); }},
      {"fft_hfftn", complex_planes, [](In x) { return at::fft_hfftn(x); }},
      {"fft_ihfftn", real_planes, [](In x) { return at::fft_ihfftn(x); }},
      {"fft_fftshift", real, [](In x) { return at::fft_fftshift(x); }},
      {"fft_ifftshift", real, [](In x) { return at::fft_ifftshift(x, {-1}); }},
      {"stft", both({{f({2, 40}), f({8})}, {f({40}), f({8})}, {f({3, 40}).expanded(), f({8})}}),
       [](In x, In window) { return at::stft(x, 8, 4, 8, window, false, true, true); }},
      {"stft/center", both({{f({2, 40}), f({8})}}),
       [](In x, In window) { return at::stft(x, 8, 4, 8, window, true, "reflect", false, true, true); }},
      {"real", complex, [](In x) { return at::real(x); }},
      {"imag", complex, [](In x) { return at::imag(x); }},
      {"conj", complex, [](In x) { return at::conj(x) * 2; }},
      {"conj/view", complex, [](In x) { return at::conj(x); }},
      {"_conj_physical", complex, [](In x) { return at::_conj_physical(x); }},
      {"resolve_conj", complex, [](In x) { return at::resolve_conj(x.conj()); }},
      {"resolve_neg", complex, [](In x) { return at::resolve_neg(at::imag(x.conj())); }},
      {"view_as_real", complex, [](In x) { return at::view_as_real(x); }},
      {"view_as_complex", pairs_of, [](In x) { return at::view_as_complex(x); }},
      {"adjoint", complex_planes, [](In x) { return at::adjoint(x) * 2; }},
      {"mH", complex_planes, [](In x) { return x.mH() * 2; }},
      {"matrix_H", both({{c({4, 6})}, {c({4, 6}).t()}}), [](In x) { return x.matrix_H() * 2; }},
  };
}

}  // namespace tandem::sweep
