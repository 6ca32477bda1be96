// Package code has the form of the codes that administrators give to records: of MFA methods and actions, contracts
// and options.
package code

import (
	"regexp"

	"castellan/domain/kit/fault"
)

var form = regexp.MustCompile(`^[A-Z][A-Z0-9_]{1,63}$`)

func Valid(text string) bool { return form.MatchString(text) }

// Check returns the problem of a field whose text does not have the form of a code; none otherwise.
func Check(field, text string) []fault.Problem {
	if Valid(text) {
		return nil
	}
	return []fault.Problem{{Field: field,
		Message: "must be 2 to 64 capital letters, digits and underscores, beginning with a letter"}}
}
