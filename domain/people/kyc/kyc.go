// Package kyc owns the decisions of administrators on accounts: whether a person is who they say, and lives where they
// say (sections 3.5 and 4.16 of the interface; decisions D-KYC-01, 02, 05, 07 and 09).
//
// The one idea: a decision is one unit. What the account is from then on, its documents, the decision itself and what
// the user is told of it commit together, on the account as it was when it was decided on.
//
// Start reading at Service.Decide.
package kyc

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"castellan/domain/access/user"
	"castellan/domain/kit/fault"
)

// Kind of a decision.
type Kind string

// The kinds.
const (
	Identity Kind = "kyc"
	Address  Kind = "address"
)

// Decision is one that was made, as it is kept.
type Decision struct {
	UserID     string
	Kind       Kind
	Value      string
	DocumentID string // of Identity: the decided KYC document (D-KYC-09)
	Reason     string
	Reasons    map[string]any // as they were sent; the texts by language are told
	DecidedBy  string
	At         time.Time
}

// Store keeps decisions. Every method joins the transaction that its context carries. It is safe for concurrent use
// and passes kyctest.Run.
type Store interface {
	// Add inserts a decision.
	Add(ctx context.Context, d Decision) error
	// Last reads the last decision of a kind on an account. RECORD_NOT_FOUND.
	Last(ctx context.Context, userID string, k Kind) (Decision, error)
}

const maxReasonChars = 2000

// Verdict is a decision on who an account belongs to.
type Verdict struct {
	UserID     string
	KYCConfirm string
	// Reason is what the user is told of a rejection, or the text of Reasons in the user's language (tr, en, ar); what
	// else is in Reasons is kept as it is. Of an approval both are ignored (D-KYC-02).
	Reason      *string
	Reasons     map[string]any
	DocumentIDs []string // that get the status of the decision
	DocumentID  string   // the decided KYC document
}

func (v Verdict) check() error {
	var problems []fault.Problem
	say := func(good bool, field, message string) {
		if !good {
			problems = append(problems, fault.Problem{Field: field, Message: message})
		}
	}
	say(v.KYCConfirm != user.WaitingApproval, "kycConfirm", "is not a decision")
	if v.rejects() {
		say(v.Reason != nil && strings.TrimSpace(*v.Reason) != "", "rejectedResult", "is required for a rejection")
	}
	say(v.Reason == nil || short(*v.Reason), "rejectedResult", "must be at most 2000 characters")
	for _, language := range languages {
		if text, told := v.Reasons[language].(string); told && !short(text) {
			say(false, "rejectedResultJson", "must be at most 2000 characters")
			break
		}
	}
	say(len(v.DocumentIDs) > 0, "userDocumentId", "must not be empty")
	return fault.All(problems)
}

func (v Verdict) rejects() bool { return v.KYCConfirm == user.Rejected }

func short(text string) bool { return utf8.RuneCountInString(text) <= maxReasonChars }

var languages = []string{"en", "tr", "ar"}

// reason is what is told in a language (D-GEN-16).
func reason(language string, texts map[string]any, plain string) string {
	for _, l := range append([]string{language}, languages...) {
		text, _ := texts[l].(string)
		if text = strings.TrimSpace(text); text != "" {
			return text
		}
	}
	return strings.TrimSpace(plain)
}
