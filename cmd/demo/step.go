package demo

import "fmt"

// failure is the panic with which check ends a part of a run. A run is a list of steps that ends at the first error,
// and no step handles one.
type failure struct{ error }

// check ends the part if there is an error. Inlined into every step it would cost 8 kB of the program.
//
//go:noinline
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// value returns the result of a call, or ends the part with its error.
func value[T any](v T, err error) T {
	check(err)
	return v
}

// attempt runs a part and returns the error that ended it. Each transaction attempts its part, so that it rolls back.
func attempt(part func()) (err error) {
	defer func() {
		switch ended := recover().(type) {
		case nil:
		case failure:
			err = ended.error
		default:
			panic(ended)
		}
	}()
	part()
	return nil
}

// within runs a part and names it in its error.
func within(name string, part func()) {
	if err := attempt(part); err != nil {
		check(fmt.Errorf("%s: %w", name, err))
	}
}
