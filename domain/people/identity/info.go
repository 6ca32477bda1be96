package identity

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/people/dropdown"
)

// Choice is a chosen option of a dropdown, with its explanation.
type Choice struct {
	OptionID    int64
	Explanation string // "" for none
}

// Info holds the user's statements about the use of the account.
type Info struct {
	ID      int64
	UserID  string
	Choices [5]Choice // in the order of Questions
}

// Question is a question answered by Info: the fields of its answer and its group of options (D-INF-03).
type Question struct{ Field, Explain, Group string }

var Questions = [5]Question{
	{"purposeOfTransactionId", "explainPurposeOfTransaction", dropdown.PurposeOfTransaction},
	{"sourceOfFundingId", "explainSourceOfFunding", dropdown.SourceOfFunding},
	{"monthlyIncomeAmountId", "explainMonthlyIncomeAmount", dropdown.MonthlyIncomeAmount},
	{"estimatedMonthlyDWAmountId", "explainEstimatedMonthlyDWAmount", dropdown.EstimatedMonthlyDWAmount},
	{"estimatedMonthlyDWCountId", "explainEstimatedMonthlyDWCount", dropdown.EstimatedMonthlyDWCount},
}

// judge validates the choices: each must be an option of its group, and explained if the option demands it. prefix is
// put before the field names.
func (s *Service) judge(ctx context.Context, i Info, prefix string) (Info, fault.Problems, error) {
	options, err := s.Options.List(ctx, dropdown.Query{})
	if err != nil {
		return i, nil, err
	}
	byID := map[int64]dropdown.Option{}
	for _, o := range options {
		byID[o.ID] = o
	}
	least := parameter.Explanation.In(s.Values()).MinLength
	var ps fault.Problems
	for n, q := range Questions {
		c := &i.Choices[n]
		c.Explanation = strings.TrimSpace(c.Explanation)
		o, known := byID[c.OptionID]
		known = known && o.Group == q.Group
		ps.Require(known, prefix+q.Field, "is not one of this list")
		if known && o.ExplainMandatory {
			ps.Require(c.Explanation != "", prefix+q.Explain, "is required for this choice")
			ps.Require(c.Explanation == "" || utf8.RuneCountInString(c.Explanation) >= least, prefix+q.Explain,
				"is shorter than %d characters", least)
		}
	}
	return i, ps, nil
}

// Inform stores the caller's statements about the use of the account, and replaces earlier ones: the id is unchanged
// (D-INF-05). Errors: INVALID_FIELD with every invalid field.
func (s *Service) Inform(ctx context.Context, by audit.By, i Info) (Info, error) {
	i, problems, err := s.judge(ctx, i, "")
	if err == nil {
		err = fault.All(problems)
	}
	if err != nil {
		return i, err
	}
	i.UserID = by.UserID
	err = s.Changes.Do(ctx, by, ActionInfo, func(ctx context.Context) (_ admin.Done, err error) {
		i.ID, err = s.Store.Inform(ctx, i)
		return admin.Done{Target: fmt.Sprint(i.ID), UserID: by.UserID}, err
	})
	return i, err
}
