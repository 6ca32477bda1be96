package message

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Kind is a kind of notice to the owner of an account (D-EXT-07). It is the name in notices.off and of the templates.
//
// To add a kind, add a constant, its line in kinds, and its texts in notices.tsv in three languages, with the
// placeholders of Template. The texts contain no link, because users must not learn to follow links in such mails.
// They contain no client-supplied text, because an attacker may have written it. Only kinds that are sent each time
// have an SMS, which is sent if an account has no mail address. Then add the writes of stepup.Messenger.Notice to the
// unit of the cause.
type Kind string

// The kinds. time and ip have values in each of them.
const (
	DeviceAdded     Kind = "device-added"
	DeviceRemoved   Kind = "device-removed"
	TOTPOn          Kind = "totp-on"
	TOTPOff         Kind = "totp-off"
	RecoveryUsed    Kind = "recovery-used"
	PasswordChanged Kind = "password-changed"
	PhoneChanged    Kind = "phone-changed"
	MailChanged     Kind = "mail-changed"
	LoginLinked     Kind = "login-linked"   // a login at another service was linked to the account
	LoginUnlinked   Kind = "login-unlinked" // and its link was removed
	FilterChanged   Kind = "geofilter-changed"
	NewNetwork      Kind = "new-network"
	FactorGuessed   Kind = "factor-guessed" // value: reason, the factor
	FactorOff       Kind = "factor-off"     // value: reason, the factor
	// PushBound: pushes of the account reached their limit (D-EXT-06).
	PushBound Kind = "push-bound"
	// UnderAttack: wrong passwords reached the total of the account (D-GEN-14).
	UnderAttack Kind = "under-attack"
	// AlarmRaised: a device of the account reported a challenge that its owner did not start (D-EXT-09).
	AlarmRaised Kind = "alarm-raised"
	// AppliedAgain: the phone number or the mail address was used to sign up (D-INT-07).
	AppliedAgain Kind = "applied-again"
	// A withdrawal is held by the money policy until expire, left its hold, or was cancelled because its approvals have
	// expired (D-POL-19). Values: amount, and of the first one expire.
	WithdrawalHeld     Kind = "withdrawal-held"
	WithdrawalReleased Kind = "withdrawal-released"
	WithdrawalExpired  Kind = "withdrawal-expired"
)

// kinds maps each kind to the period in which it is sent at most once; 0: each time.
var kinds = map[Kind]time.Duration{
	DeviceAdded: 0, DeviceRemoved: 0, TOTPOn: 0, TOTPOff: 0, RecoveryUsed: 0, PasswordChanged: 0, PhoneChanged: 0,
	MailChanged: 0, LoginLinked: 0, LoginUnlinked: 0, FilterChanged: time.Hour, NewNetwork: time.Hour,
	FactorGuessed: time.Hour, FactorOff: time.Hour, PushBound: 24 * time.Hour,
	UnderAttack: 24 * time.Hour, AppliedAgain: time.Hour, AlarmRaised: time.Hour,
	WithdrawalHeld: 0, WithdrawalReleased: 0, WithdrawalExpired: 0,
}

// Once returns the period in which a notice of the kind is sent at most once; 0: it is sent each time.
func (k Kind) Once() time.Duration { return kinds[k] }

// CheckKinds returns an error for names that are not kinds.
func CheckKinds(names []string) error {
	var faults []error
	for _, n := range names {
		if _, known := kinds[Kind(n)]; !known {
			faults = append(faults, fmt.Errorf("%.64q is not a kind of notice; the kinds are %s", n, kindNames()))
		}
	}
	return errors.Join(faults...)
}

// Kinds lists the kinds by name.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kinds)) }

func kindNames() string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// noticesTSV holds the texts of the kinds and of the decisions on an account: name, language, title, body, sms.
//
//go:embed notices.tsv
var noticesTSV string

// texts are the notices by language and name.
var texts = func() map[string]map[string]notice {
	all := map[string]map[string]notice{}
	for line := range strings.Lines(noticesTSV) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if f[0] == "name" {
			continue
		}
		if all[f[1]] == nil {
			all[f[1]] = map[string]notice{}
		}
		all[f[1]][f[0]] = notice{title: f[2], body: f[3], sms: f[4]}
	}
	return all
}()
