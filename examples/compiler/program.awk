# Prints a C program with this number of functions.
BEGIN {
    for (each = 0; each < functions; each++)
        printf "int f%d(int a, int b) { int i, sum = %d; for (i = a; i < b; i++) if (i %% 3) sum += i * %d; return sum; }\n", each, each, each
}
