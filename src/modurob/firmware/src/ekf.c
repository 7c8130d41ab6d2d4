#include "modurob/ekf.h"

#include <string.h>

#include "modurob/linear.h"

void mr_ekf_init(mr_ekf *ekf, const mr_table *table, mr_real dt)
{
  const int n = table->joint_count;
  memset(ekf, 0, sizeof *ekf);
  ekf->dt = dt;
  ekf->substeps = 1;
  for (int k = 0; k < n; k++) {
    ekf->Q[k] = MR_C(1e-8);
    ekf->Q[n + k] = MR_C(1e-4);
    ekf->R[k] = MR_C(1e-4);
  }
  for (int k = 0; k < 2 * n; k++) {
    ekf->P[k * 2 * n + k] = MR_C(1e-2);
  }
}

/* K = F S of the variational equation S' = F S at a state: F = [0, 1; da/dq, da/dv]. */
static mr_status sensitivity(const mr_table *table, mr_ekf_work *work, const mr_real *q,
                             const mr_real *v, const mr_real *a)
{
  const int n = table->joint_count, m = 2 * n, cells = n * n;
  mr_real *by_q = work->D, *by_v = work->D + cells, *M = work->D + 2 * cells;
  mr_inverse_dynamics_derivatives(table, &work->dynamics, q, v, a, work->D);
  if (mr_cholesky(n, M) != MR_OK) {
    return MR_SINGULAR;
  }
  for (int j = 0; j < n; j++) {
    mr_solve(n, M, by_q + j, n);
    mr_solve(n, M, by_v + j, n);
  }
  for (int j = 0; j < m; j++) {
    for (int i = 0; i < n; i++) {
      mr_real sum = 0;
      for (int k = 0; k < n; k++) {
        sum -= by_q[i * n + k] * work->S[k * m + j] + by_v[i * n + k] * work->S[(n + k) * m + j];
      }
      work->K[i * m + j] = work->S[(n + i) * m + j];
      work->K[(n + i) * m + j] = sum;
    }
  }
  return MR_OK;
}

/* A step of Runge and Kutta of the state; work->rates becomes its derivative by the state. */
static mr_status step(mr_ekf *ekf, const mr_table *table, mr_ekf_work *work, const mr_real *tau,
                      mr_real h)
{
  static const mr_real shares[4] = {0, MR_C(0.5), MR_C(0.5), 1}, weights[4] = {1, 2, 2, 1};
  const int n = table->joint_count, m = 2 * n;
  mr_real q[MR_MAX_JOINTS], v[MR_MAX_JOINTS], a[MR_MAX_JOINTS], rate[MR_MAX_JOINTS] = {0};
  mr_real sum_v[MR_MAX_JOINTS] = {0}, sum_a[MR_MAX_JOINTS] = {0};
  memset(work->rates, 0, (size_t)(m * m) * sizeof(mr_real));
  memset(work->K, 0, (size_t)(m * m) * sizeof(mr_real));
  memset(a, 0, sizeof a);
  for (int stage = 0; stage < 4; stage++) {
    mr_status status;
    const mr_real share = shares[stage] * h;
    for (int k = 0; k < n; k++) {
      q[k] = ekf->q[k] + share * rate[k];
      v[k] = ekf->v[k] + share * a[k];
    }
    for (int k = 0; k < m * m; k++) {
      work->S[k] = share * work->K[k] + (k % (m + 1) == 0 ? 1 : 0);
    }
    mr_forward_dynamics(table, &work->dynamics, q, v, tau, a);
    status = sensitivity(table, work, q, v, a);
    if (status != MR_OK) {
      return status;
    }
    for (int k = 0; k < n; k++) {
      rate[k] = v[k];
      sum_v[k] += weights[stage] / 6 * v[k];
      sum_a[k] += weights[stage] / 6 * a[k];
    }
    for (int k = 0; k < m * m; k++) {
      work->rates[k] += h * weights[stage] / 6 * work->K[k];
    }
  }
  for (int k = 0; k < n; k++) {
    ekf->q[k] += h * sum_v[k];
    ekf->v[k] += h * sum_a[k];
  }
  for (int k = 0; k < m; k++) {
    work->rates[k * (m + 1)] += 1;
  }
  return MR_OK;
}

static void multiply(int n, const mr_real *A, const mr_real *B, mr_real *out)
{
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      mr_real sum = 0;
      for (int k = 0; k < n; k++) {
        sum += A[i * n + k] * B[k * n + j];
      }
      out[i * n + j] = sum;
    }
  }
}

/* P = (X + X^T) / 2: the symmetric part, which rounding has left. */
static void symmetrize(int n, mr_real *P)
{
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < i; j++) {
      P[i * n + j] = P[j * n + i] = (P[i * n + j] + P[j * n + i]) / 2;
    }
  }
}

mr_status mr_ekf_predict(mr_ekf *ekf, const mr_table *table, mr_ekf_work *work, const mr_real *tau)
{
  const int m = 2 * table->joint_count;
  for (int k = 0; k < ekf->substeps; k++) {
    const mr_status status = step(ekf, table, work, tau, ekf->dt / (mr_real)ekf->substeps);
    if (status != MR_OK) {
      return status;
    }
    if (k > 0) {
      multiply(m, work->rates, work->A, work->K);
      memcpy(work->A, work->K, (size_t)(m * m) * sizeof(mr_real));
    } else {
      memcpy(work->A, work->rates, (size_t)(m * m) * sizeof(mr_real));
    }
  }
  multiply(m, work->A, ekf->P, work->K);
  for (int i = 0; i < m; i++) { /* A P A^T + Q */
    for (int j = 0; j < m; j++) {
      mr_real sum = i == j ? ekf->Q[i] : 0;
      for (int k = 0; k < m; k++) {
        sum += work->K[i * m + k] * work->A[j * m + k];
      }
      ekf->P[i * m + j] = sum;
    }
  }
  symmetrize(m, ekf->P);
  return MR_OK;
}

mr_status mr_ekf_correct(mr_ekf *ekf, const mr_table *table, mr_ekf_work *work, const mr_real *y)
{
  const int n = table->joint_count, m = 2 * n;
  mr_real *P = ekf->P, *K = work->K, *S = work->S, *half = work->A;
  mr_real residual[MR_MAX_JOINTS], dx[MR_EKF_SIZE] = {0};
  int rows[MR_MAX_JOINTS], count = 0;
  for (int k = 0; k < n; k++) {
    if (y[k] == y[k]) { /* not NaN */
      residual[count] = y[k] - ekf->q[k];
      rows[count++] = k;
    }
  }
  for (int i = 0; i < count; i++) {
    for (int j = 0; j < count; j++) {
      S[i * count + j] = P[rows[i] * m + rows[j]] + (i == j ? ekf->R[rows[i]] : 0);
    }
  }
  if (mr_cholesky(count, S) != MR_OK) {
    return MR_SINGULAR;
  }
  for (int i = 0; i < m; i++) { /* K = P H^T S^-1 */
    for (int j = 0; j < count; j++) {
      K[i * count + j] = P[i * m + rows[j]];
    }
    mr_solve(count, S, K + i * count, 1);
    for (int j = 0; j < count; j++) {
      dx[i] += K[i * count + j] * residual[j];
    }
  }
  for (int i = 0; i < m; i++) { /* (1 - K H) P */
    for (int j = 0; j < m; j++) {
      half[i * m + j] = P[i * m + j];
      for (int k = 0; k < count; k++) {
        half[i * m + j] -= K[i * count + k] * P[rows[k] * m + j];
      }
    }
  }
  for (int i = 0; i < m; i++) { /* (1 - K H) P (1 - K H)^T + K R K^T: Joseph's form */
    for (int j = 0; j < m; j++) {
      P[i * m + j] = half[i * m + j];
      for (int k = 0; k < count; k++) {
        P[i * m + j] -= (half[i * m + rows[k]] - K[i * count + k] * ekf->R[rows[k]]) *
                        K[j * count + k];
      }
    }
  }
  symmetrize(m, P);
  for (int k = 0; k < n; k++) {
    ekf->q[k] += dx[k];
    ekf->v[k] += dx[n + k];
  }
  return MR_OK;
}
