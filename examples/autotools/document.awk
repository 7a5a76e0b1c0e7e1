# Prints an XML document with this number of rows.
BEGIN {
    print "<?xml version=\"1.0\"?>\n<rows>"
    for (row = 1; row <= rows; row++)
        printf "<row id=\"%d\" kind=\"even &amp; odd\"><name>Row number %d</name><empty/></row>\n", row, row
    print "</rows>"
}
