// Package sorting sorts slices with one routine for all types. slices.SortFunc is compiled for each type of element,
// which is about 20 kB of the program. These functions are slower by allocations and by calls through closures,
// so paths that count allocations keep slices.SortFunc.
package sorting

import "sort"

// Func sorts s in ascending order of cmp, which is as for slices.SortFunc. Equal elements may change their order.
func Func[E any](s []E, cmp func(a, b E) int) {
	sort.Slice(s, func(i, j int) bool { return cmp(s[i], s[j]) < 0 })
}

// Stable is Func that keeps the order of equal elements.
func Stable[E any](s []E, cmp func(a, b E) int) {
	sort.SliceStable(s, func(i, j int) bool { return cmp(s[i], s[j]) < 0 })
}
