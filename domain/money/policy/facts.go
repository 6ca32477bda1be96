package policy

import (
	"time"

	"castellan/domain/kit/amount"
)

// Facts are what a movement is judged by. They are read in its unit of work. A zero instant is unknown, or never was.
type Facts struct {
	Kind      Kind          `json:"kind"`
	At        time.Time     `json:"at"` // of the judgement
	Requested time.Time     `json:"requested,omitzero"`
	Asset     Asset         `json:"asset"`
	Direction Direction     `json:"direction"`
	Amount    amount.Amount `json:"amount"`
	Value     amount.Amount `json:"value"` // in TRY
	Rated     bool          `json:"rated"` // whether Value is known

	Destination DestinationFacts `json:"destination,omitzero"`
	Account     AccountFacts     `json:"account,omitzero"`
	Device      Device           `json:"device,omitempty"`
	Setting     string           `json:"setting,omitempty"`
	Initiator   Initiator        `json:"initiator"`
	// Read are the facts that were read; others of Wants are unknown.
	Read Wants `json:"read,omitzero"`
}

// DestinationFacts are the facts about a destination. Key is network, address and tag.
type DestinationFacts struct {
	Key      string    `json:"key"`
	BookedAt time.Time `json:"bookedAt,omitzero"` // zero: not in the address book
	Used     bool      `json:"used,omitempty"`    // whether the account ever withdrew to it
}

// AccountFacts are the facts about an account.
type AccountFacts struct {
	ID            string    `json:"id"`
	Level         int       `json:"level"`
	AML           string    `json:"aml"`
	CreatedAt     time.Time `json:"createdAt"`
	CredentialsAt time.Time `json:"credentialsAt,omitzero"` // of the last change of a credential
	CreditedAt    time.Time `json:"creditedAt,omitzero"`    // of the last credit of the asset
	Withdrew      bool      `json:"withdrew,omitempty"`
}

// Initiator is who asked for a movement. Name is the id of a user or the name of a service's key; "" for the owner.
type Initiator struct {
	Type  InitiatorType `json:"type"`
	Name  string        `json:"name,omitempty"`
	Roles []string      `json:"roles,omitempty"`
}

// String returns the type, with the name of an operator or a service: "SERVICE:shop".
func (i Initiator) String() string {
	if i.Type == User {
		return string(User)
	}
	return string(i.Type) + ":" + i.Name
}

// Total is a sum of movements, with the one that is judged. Number is used for Count and Accounts, otherwise Sum.
type Total struct {
	Sum    amount.Sum
	Number int64
}
