package wire

import (
	"castellan/domain/money/transaction"
	"castellan/http/rest"
)

// Hold is why a queued withdrawal is held back from the wallet.
type Hold struct {
	Reason string     `json:"reason" enum:"ACCOUNT,PROHIBITED,AML,ALARM,DIGEST,POLICY" example:"AML"`
	Since  rest.Time  `json:"since" example:"2026-11-28T10:00:00.000Z"`
	Until  *rest.Time `json:"until" doc:"end of a wait, or of the time for approvals" example:"2026-11-30T10:00:00.000Z"`
}

func (Hold) SchemaName() string { return "WithdrawalHold" }

// HoldOf returns nil for an entry that is not held.
func HoldOf(h transaction.Held) *Hold {
	if h.Reason == "" {
		return nil
	}
	return &Hold{string(h.Reason), rest.Time{Time: h.Since}, rest.At(h.Until)}
}
