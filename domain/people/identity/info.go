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

// Choice is an option of a dropdown that was chosen, with what was said to explain it.
type Choice struct {
	OptionID    int64
	Explanation string // "" for none
}

// Info is what a user tells of the use of the account.
type Info struct {
	ID      int64
	UserID  string
	Choices [5]Choice // in the order of Questions
}

// Question is one that Info answers: the fields of its answer and the options to choose from (D-INF-03).
type Question struct{ Field, Explain, Group string }

// Questions are those of Info.
var Questions = [5]Question{
	{"purposeOfTransactionId", "explainPurposeOfTransaction", dropdown.PurposeOfTransaction},
	{"sourceOfFundingId", "explainSourceOfFunding", dropdown.SourceOfFunding},
	{"monthlyIncomeAmountId", "explainMonthlyIncomeAmount", dropdown.MonthlyIncomeAmount},
	{"estimatedMonthlyDWAmountId", "explainEstimatedMonthlyDWAmount", dropdown.EstimatedMonthlyDWAmount},
	{"estimatedMonthlyDWCountId", "explainEstimatedMonthlyDWCount", dropdown.EstimatedMonthlyDWCount},
}

// judge reads the choices: each must be an option of its group, and explained where the option asks for it. Prefix
// stands before the names of the fields.
func (s *Service) judge(ctx context.Context, i Info, prefix string) (Info, []fault.Problem, error) {
	options, err := s.Options.List(ctx, dropdown.Query{})
	if err != nil {
		return i, nil, err
	}
	byID := map[int64]dropdown.Option{}
	for _, o := range options {
		byID[o.ID] = o
	}
	least := parameter.Explanation.In(s.Values()).MinLength
	var problems []fault.Problem
	for n, q := range Questions {
		c := &i.Choices[n]
		c.Explanation = strings.TrimSpace(c.Explanation)
		o, known := byID[c.OptionID]
		switch {
		case !known || o.Group != q.Group:
			problems = append(problems, fault.Problem{Field: prefix + q.Field, Message: "is not one of this list"})
		case !o.ExplainMandatory:
		case c.Explanation == "":
			problems = append(problems, fault.Problem{Field: prefix + q.Explain, Message: "is required for this choice"})
		case utf8.RuneCountInString(c.Explanation) < least:
			problems = append(problems, fault.Problem{Field: prefix + q.Explain,
				Message: fmt.Sprintf("is shorter than %d characters", least)})
		}
	}
	return i, problems, nil
}

// Inform keeps what the caller tells of the use of the account, in place of what was told before: the id stays
// (D-INF-05). Errors: INVALID_FIELD with every faulty field.
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
