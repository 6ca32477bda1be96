package wire

import (
	"castellan/domain/kit/audit"
	"castellan/http/rest"
)

// Example is a row of the audit by which a rehearsal shows what it found.
type Example struct {
	At        rest.Time `json:"at"`
	ActorID   string    `json:"actorId"`
	UserID    string    `json:"userId"`
	Action    string    `json:"action"`
	IP        string    `json:"ip"`
	RequestID string    `json:"requestId"`
}

func (Example) SchemaName() string { return "RehearsalExample" }

// Examples shows rows.
func Examples(rows []audit.Stored) []Example {
	return rest.Each(rows, func(r audit.Stored) Example {
		return Example{rest.Time{Time: r.At}, r.ActorID, r.UserID, r.Action, r.IP, r.RequestID}
	})
}
