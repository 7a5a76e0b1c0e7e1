/* Renders a document of some paragraphs as HTML. */
#include <cmark.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char paragraph[] = "Some *emphasis*, a [link](https://example.org/ \"title\") and `code`.\n\n> A quote\n\n* an item\n\n";

int main(int count, char **arguments) {
    long paragraphs = count > 1 ? atol(arguments[1]) : 1000;
    size_t length = sizeof paragraph - 1;
    char *text = malloc(length * paragraphs + 1);
    if (text == NULL) return 1;
    for (long each = 0; each < paragraphs; each++) memcpy(text + length * each, paragraph, length);
    char *html = cmark_markdown_to_html(text, length * paragraphs, CMARK_OPT_DEFAULT);
    printf("%zu bytes of HTML\n", strlen(html));
    free(html);
    free(text);
    return 0;
}
