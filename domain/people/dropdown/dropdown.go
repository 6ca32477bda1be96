// Package dropdown manages the options of form fields, such as the source of funding, in the languages of the service
// (section 2.12 of the interface; D-INF-01, D-INF-03).
//
// The one idea: the options are rows, so that administrators change them (D-INT-15). A new installation begins with
// those of options.tsv. Users' answers name options, so an option is never deleted: it becomes inactive.
//
// Start reading at Option; administration is in service.go.
package dropdown

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

// The groups of options defined by the interface (D-INF-03).
const (
	PurposeOfTransaction     = "PURPOSE_OF_TRANSACTION"
	SourceOfFunding          = "SOURCE_OF_FUNDING"
	MonthlyIncomeAmount      = "MONTHLY_INCOME_AMOUNT"
	EstimatedMonthlyDWAmount = "ESTIMATED_MONTHLY_DW_AMOUNT"
	EstimatedMonthlyDWCount  = "ESTIMATED_MONTHLY_DW_COUNT"
)

// Option is one option. Its Code is unique within its Group.
type Option struct {
	ID               int64 `audit:"-"` // the target
	Group, Code      string
	English, Turkish string
	Arabic           string
	// ExplainMandatory requires an explanation from a user who chooses the option.
	ExplainMandatory bool
	OrderNo          int64 // place in its group; options with the same number are in order of creation
	Inactive         bool  // neither offered nor accepted; earlier answers keep it
}

// Name returns the option's name in a language: tr, en or ar; any other means English.
func (o Option) Name(language string) string {
	switch language {
	case "tr":
		return o.Turkish
	case "ar":
		return o.Arabic
	}
	return o.English
}

// Query selects active options; a nil field does not filter.
type Query struct {
	Group    *string
	Code     *string // of the group or of the option
	Inactive bool    // select inactive options too
}

// Store stores the options. It is safe for concurrent use and joins the transaction that its context carries.
type Store interface {
	// List lists the matching options by order number, then in order of creation.
	List(ctx context.Context, q Query) ([]Option, error)
	// Add inserts an option and returns its id; the id of the argument is ignored. RECORD_ALREADY_EXIST if its group
	// has the code, also under concurrent calls.
	Add(ctx context.Context, o Option) (int64, error)
	// Change calls f with the option and saves the result, as one step; group and code are unchanged. RECORD_NOT_FOUND.
	Change(ctx context.Context, id int64, f func(Option) (Option, error)) error
}

//go:embed options.tsv
var seeded string

// Seed writes the options of a new installation. The caller ensures that it runs once, in one transaction.
func Seed(ctx context.Context, s Store) error {
	place := int64(0)
	for line := range strings.Lines(seeded) {
		place++
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 6 {
			return fmt.Errorf("options.tsv: %d columns in %q", len(f), line)
		}
		if _, err := s.Add(ctx, Option{Group: f[0], Code: f[1], ExplainMandatory: f[2] == "true", English: f[3],
			Turkish: f[4], Arabic: f[5], OrderNo: place}); err != nil {
			return fmt.Errorf("option %s of %s: %w", f[1], f[0], err)
		}
	}
	return nil
}
