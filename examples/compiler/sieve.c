/* Counts the primes below a million, several times. */
static char composite[1000000];

int main(void) {
    int count = 0;
    for (int round = 0; round < 20; round++) {
        count = 0;
        for (int each = 0; each < 1000000; each++) composite[each] = 0;
        for (int each = 2; each < 1000000; each++) {
            if (composite[each]) continue;
            count++;
            for (int multiple = each + each; multiple < 1000000; multiple += each) composite[multiple] = 1;
        }
    }
    return count != 78498;
}
