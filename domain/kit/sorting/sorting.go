// Package sorting sorts slices with one routine for all types. slices.SortFunc is compiled for each type of element,
// which is about 20 kB of the program. These functions are slower by an allocation and by calls through an interface,
// so paths that count allocations keep slices.SortFunc.
package sorting

import "sort"

// Func sorts s in ascending order of cmp, which is as for slices.SortFunc. Equal elements may change their order.
func Func[E any](s []E, cmp func(a, b E) int) { sort.Sort(by[E]{s, cmp}) }

// Stable is Func that keeps the order of equal elements.
func Stable[E any](s []E, cmp func(a, b E) int) { sort.Stable(by[E]{s, cmp}) }

type by[E any] struct {
	s   []E
	cmp func(a, b E) int
}

func (b by[E]) Len() int           { return len(b.s) }
func (b by[E]) Less(i, j int) bool { return b.cmp(b.s[i], b.s[j]) < 0 }
func (b by[E]) Swap(i, j int)      { b.s[i], b.s[j] = b.s[j], b.s[i] }
