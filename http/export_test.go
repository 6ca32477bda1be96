package httpapi

// SetExamples replaces the examples of the document, after a test wrote the file.
func SetExamples(b []byte) { examples = b }
