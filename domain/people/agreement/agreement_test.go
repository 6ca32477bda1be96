package agreement_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/people/agreement"
)

// Every invalid field is named; a limit is in characters and permits its own number.
func TestCheck(t *testing.T) {
	good := func() agreement.Agreement { return agreement.Agreement{Name: "Terms", Version: "2.1"} }
	for name, c := range map[string]struct {
		edit func(*agreement.Agreement)
		want []string
	}{
		"good":                   {func(*agreement.Agreement) {}, nil},
		"no version":             {func(a *agreement.Agreement) { a.Version = "" }, []string{"version"}},
		"a blank version":        {func(a *agreement.Agreement) { a.Version = " \t " }, []string{"version"}},
		"a version of two lines": {func(a *agreement.Agreement) { a.Version = "2\n1" }, []string{"version"}},
		"a space in the version": {func(a *agreement.Agreement) { a.Version = "2 beta" }, nil},
		"the longest texts": {func(a *agreement.Agreement) {
			a.Name, a.Description = strings.Repeat("ü", 200), strings.Repeat("ü", 4000)
			a.Version = strings.Repeat("1", 32)
		}, nil},
		"longer ones": {func(a *agreement.Agreement) {
			a.Name, a.Description = strings.Repeat("ü", 201), strings.Repeat("ü", 4001)
			a.Version = strings.Repeat("1", 33)
		}, []string{"name", "description", "version"}},
	} {
		a := good()
		c.edit(&a)
		var fields []string
		var refusal *fault.Error
		if errors.As(a.Check(), &refusal) {
			for _, p := range refusal.Fields {
				fields = append(fields, p.Field)
			}
		}
		if !slices.Equal(fields, c.want) {
			t.Errorf("%s: %v, want %v", name, fields, c.want)
		}
	}
}
