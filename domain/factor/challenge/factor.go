package challenge

import (
	"castellan/domain/delivery/message"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// FlowRecovery counts wrong recovery codes separately, so that they and other values do not lock each other.
const FlowRecovery Flow = "TOTP_RECOVER"

// Factors is a set of factors that are switched off (D-2FA-13): a bit for each kind of value in each flow. A factor
// is off in one flow only, so a stranger's guesses in a public flow do not prevent the owner's login. The
// kinds whose codes are sent are one factor, as they have one budget.
type Factors int64

// factorFlows lists the flows in the order of their bits.
var factorFlows = [...]Flow{FlowLogin, FlowReset, FlowSession, FlowRecovery}

// FactorOf returns the set of one factor.
func FactorOf(f Flow, n Name) Factors {
	for i, flow := range factorFlows {
		switch counts := n.of().counts; {
		case flow == f && counts == sentCodes:
			return 1 << (2 * i)
		case flow == f && counts == timedCodes:
			return 2 << (2 * i)
		}
	}
	return 0
}

// Has reports whether a factor is in the set.
func (fs Factors) Has(f Flow, n Name) bool { return fs&FactorOf(f, n) != 0 }

// SwitchOff records in the account's row that a factor is off. It accompanies the Spend that reached the limit. For
// the subject of a decoy it changes no account.
type SwitchOff struct {
	UserID string
	Factor Factors
}

func (SwitchOff) Table() string { return "users" }
func (w SwitchOff) Row() string { return w.UserID }

// SwitchOn resets the consecutive wrong values of an account and switches its factors on.
type SwitchOn struct{ UserID string }

func (SwitchOn) Table() string { return "users" }
func (w SwitchOn) Row() string { return w.UserID }

// Keys returns the keys of the budgets that SwitchOn resets.
func (w SwitchOn) Keys() (keys []string) {
	for _, f := range factorFlows {
		keys = append(keys, BudgetKey(w.UserID, f))
	}
	return keys
}

// guessesTold is the number of consecutive wrong values after which the owner is first notified.
const guessesTold = 10

// Notable reports whether this number of consecutive wrong values needs a write.
func (r Rules) Notable(row int) bool { return row == guessesTold || row > 0 && row == r.FactorAttempts }

// Guessed returns the writes for this number of consecutive wrong values. The owner is notified at the tenth, and
// when the factor is switched off.
func Guessed(n Notices, to Account, f Flow, kind Name, row int, r Rules, ip string) (writes []commit.Write) {
	v := message.Values{"reason": factorName(f, kind)}
	if row == r.FactorAttempts {
		return append(n.Notice(to, message.FactorOff, v, ip), SwitchOff{to.UserID, FactorOf(f, kind)})
	}
	if row == guessesTold {
		return n.Notice(to, message.FactorGuessed, v, ip)
	}
	return nil
}

func factorName(f Flow, n Name) string {
	switch {
	case f == FlowRecovery:
		return "TOTP recovery"
	case n.Sent():
		return Listed(counted(sentCodes))
	}
	return string(n)
}

// ByPasskey returns the device of the passkey that completed a method; "" if none did.
func (c Challenge) ByPasskey() string {
	for _, m := range c.Methods {
		if m.Order > 0 && m.Proof.Assertion() {
			return m.Proof.DeviceID
		}
	}
	return ""
}

// MayChangeFactors returns nil if the completed challenge may add or remove a factor of an account that has passkeys or
// not. With a settled one, another method is not enough: a reader of its codes could replace the stronger factor. A
// node of an older release may have started the challenge without this rule.
func (c Challenge) MayChangeFactors(passkeys bool) error {
	if passkeys && !c.Recovered && !c.Settling && c.ByPasskey() == "" {
		return fault.New(fault.MFANotAvailable, "an account with a passkey changes its factors only with a passkey")
	}
	return nil
}

// Changed returns the audit row of a change of factors. A recovery code in place of a passkey also restarts the time in
// which the passkeys settle.
func (x Execution) Changed(action, target string) []commit.Write {
	c := x.Challenge
	writes := []commit.Write{audit.Record{At: x.Now, ActorID: c.UserID, UserID: c.UserID, Action: action, Target: target,
		Outcome: audit.Success, IP: c.Starter.IP, RequestID: c.Starter.RequestID}}
	if c.Recovered {
		writes = append(writes, passkey.Restart{UserID: c.UserID, At: x.Now})
	}
	return writes
}
