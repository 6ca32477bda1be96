package account

// SetMostFound sets the number of results up to which a search reads them from the index, and returns its end.
func SetMostFound(n int) (end func()) {
	before := mostFound
	mostFound = n
	return func() { mostFound = before }
}
