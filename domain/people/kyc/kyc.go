// Package kyc records the decisions of administrators on the identity and the address of users (sections 3.5 and 4.16
// of the interface; decisions D-KYC-01, 02, 05, 07 and 09).
//
// The one idea: a decision is one unit. The new state of the account, its documents, the decision itself and the
// message to the user commit together. The unit is fenced by the version of the account that the decision was based on.
//
// Start reading at Service.Decide.
package kyc

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
)

// Kind is the kind of a decision.
type Kind string

// The kinds.
const (
	Identity Kind = "kyc"
	Address  Kind = "address"
)

// Decision is a stored decision.
type Decision struct {
	UserID     string
	Kind       Kind
	Value      string
	DocumentID string // for Identity: the decided KYC document (D-KYC-09)
	Reason     string
	Reasons    map[string]any // as sent; the user is told the texts by language
	DecidedBy  string
	At         time.Time
}

// Store stores decisions. Every method joins the transaction that its context carries. It is safe for concurrent use.
type Store interface {
	// Add inserts a decision.
	Add(ctx context.Context, d Decision) error
	// Last reads the last decision of a kind on an account. RECORD_NOT_FOUND.
	Last(ctx context.Context, userID string, k Kind) (Decision, error)
}

const maxReasonChars = 2000

// Verdict is a decision on the identity of an account's owner.
type Verdict struct {
	UserID     string
	KYCConfirm string
	// Reason is the reason of a rejection as sent to the user, unless Reasons has a text in the user's language (tr,
	// en, ar). Other content of Reasons is stored unchanged. For an approval both are ignored (D-KYC-02).
	Reason      *string
	Reasons     map[string]any
	DocumentIDs []string // get the status of the decision
	DocumentID  string   // the decided KYC document
}

func (v Verdict) check() error {
	var ps fault.Problems
	ps.Require(v.KYCConfirm != user.WaitingApproval, "kycConfirm", "is not a decision")
	ps.Require(!v.rejects() || v.Reason != nil && strings.TrimSpace(*v.Reason) != "", "rejectedResult",
		"is required for a rejection")
	ps.Require(v.Reason == nil || short(*v.Reason), "rejectedResult", "must be at most 2000 characters")
	long := func(language string) bool { text, _ := v.Reasons[language].(string); return !short(text) }
	ps.Require(!slices.ContainsFunc(languages, long), "rejectedResultJson", "must be at most 2000 characters")
	ps.Require(len(v.DocumentIDs) > 0, "userDocumentId", "must not be empty")
	return fault.All(ps)
}

func (v Verdict) rejects() bool { return v.KYCConfirm == user.Rejected }

func short(text string) bool { return utf8.RuneCountInString(text) <= maxReasonChars }

var languages = []string{"en", "tr", "ar"}

// reason returns the reason in a language (D-GEN-16).
func reason(language string, texts map[string]any, plain string) string {
	for _, l := range append([]string{language}, languages...) {
		text, _ := texts[l].(string)
		if text = strings.TrimSpace(text); text != "" {
			return text
		}
	}
	return strings.TrimSpace(plain)
}
