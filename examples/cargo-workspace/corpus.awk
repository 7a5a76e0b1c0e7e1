# Prints 20,000 lines of words; the same for the same seed.
BEGIN {
    srand(seed)
    split("searching needle haystack lines of text reading parsing files", words, " ")
    for (line = 1; line <= 20000; line++) {
        for (word = 1; word <= 8; word++) printf "%s ", words[int(rand() * 9) + 1]
        print int(rand() * 1000)
    }
}
