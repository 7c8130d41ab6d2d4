#include "modurob/linear.h"

mr_status mr_cholesky(int n, mr_real *A)
{
  for (int j = 0; j < n; j++) {
    for (int i = j; i < n; i++) {
      mr_real sum = A[i * n + j];
      for (int k = 0; k < j; k++) {
        sum -= A[i * n + k] * A[j * n + k];
      }
      if (i > j) {
        A[i * n + j] = sum / A[j * n + j];
      } else if (sum > 0) {
        A[j * n + j] = mr_sqrt(sum);
      } else {
        return MR_SINGULAR;
      }
    }
  }
  return MR_OK;
}

void mr_solve(int n, const mr_real *L, mr_real *x, int stride)
{
  for (int i = 0; i < n; i++) {
    for (int k = 0; k < i; k++) {
      x[i * stride] -= L[i * n + k] * x[k * stride];
    }
    x[i * stride] /= L[i * n + i];
  }
  for (int i = n - 1; i >= 0; i--) {
    for (int k = i + 1; k < n; k++) {
      x[i * stride] -= L[k * n + i] * x[k * stride];
    }
    x[i * stride] /= L[i * n + i];
  }
}
