/* Dense matrices of run-time size, row by row. */
#ifndef MODUROB_LINEAR_H
#define MODUROB_LINEAR_H

#include "modurob/config.h"

/* Replace the lower triangle of a positive definite matrix A (n x n) by L with A = L L^T. */
mr_status mr_cholesky(int n, mr_real *A);

/* Solve L L^T x = b in place; the entries of x are `stride` apart. */
void mr_solve(int n, const mr_real *L, mr_real *x, int stride);

#endif
