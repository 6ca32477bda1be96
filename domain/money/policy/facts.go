package policy

import (
	"time"

	"castellan/domain/kit/amount"
)

// Facts are what a movement is judged by. They are read in its unit of work. A zero instant is unknown, or never was.
type Facts struct {
	Kind      Kind
	At        time.Time // of the judgement
	Requested time.Time
	Asset     Asset
	Direction Direction
	Amount    amount.Amount
	Value     amount.Amount // in TRY
	Rated     bool          // whether Value is known

	Destination DestinationFacts
	Account     AccountFacts
	Device      Device
	Setting     string
	Initiator   Initiator
}

// DestinationFacts are the facts about a destination. Key is network, address and tag.
type DestinationFacts struct {
	Key      string
	BookedAt time.Time // zero: not in the address book
	Used     bool      // whether the account ever withdrew to it
}

// AccountFacts are the facts about an account.
type AccountFacts struct {
	ID            string
	Level         int
	AML           string
	CreatedAt     time.Time
	CredentialsAt time.Time // of the last change of a credential
	CreditedAt    time.Time // of the last credit of the asset
	Withdrew      bool
}

// Initiator is who asked for a movement. Name is the id of a user or the name of a service's key; "" for the owner.
type Initiator struct {
	Type  InitiatorType
	Name  string
	Roles []string
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
