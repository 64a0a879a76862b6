/* Calls the function that `lamella compile` made of scores.hlo, and prints its results. */
#include <stdio.h>

#include "scores.h"

int main(void) {
  float x[2][3] = {{1, 2, 3}, {0, 0, 0}}, weight[3][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}};
  float out[2][4];
  if (scores(&x[0][0], &weight[0][0], &out[0][0]) != 0) return puts(lamella_program_error()), 1;
  for (int i = 0; i < 2; ++i)
    printf("%.4f %.4f %.4f %.4f\n", out[i][0], out[i][1], out[i][2], out[i][3]);
}
