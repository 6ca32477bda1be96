// Package staffrequest manages the requests of staff to administrators: for the deployment of a service, and for access
// to the VPN (section 4.13 of the interface; D-DVP-01 to D-DVP-05).
//
// The one idea: both are a Request with additional fields, and every update counts as a decision of the caller,
// whatever it changes.
//
// Start reading at Request; Service applies the operations of administrators.
package staffrequest

import (
	"time"
	"unicode/utf8"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// Status is the status of a request. Every change between two statuses is allowed (D-DVP-04).
type Status string

// The statuses.
const (
	Pending  Status = "PENDING"
	Approved Status = "APPROVED"
	Rejected Status = "REJECTED"
)

// The maximum length of a comment, in characters, and of a deployment, in minutes.
const (
	maxCommentChars = 2000
	maxMinutes      = 365 * 24 * 60
)

// Request holds the fields that both kinds of requests have.
type Request struct {
	ID      int64
	Status  Status
	Comment string
	Type    string
	// RequestorID is the requesting user, DeciderID the user of the last update; "" before the first.
	RequestorID, DeciderID string
	CreatedAt, UpdatedAt   time.Time // in whole milliseconds
}

func (r Request) Mark() Place { return Place{r.ID} }

func (r *Request) request() *Request { return r }

// Place is the position of a request in its list, newest first.
type Place struct{ ID int64 }

// Deploy requests the deployment of a build.
type Deploy struct {
	Request
	ServiceName, OriginalServiceName, BuildNumber string
	Minutes                                       int64 // estimated duration
}

// VPN requests access to the VPN. Name and Surname are those of the account at the time of the request. Type is in
// upper case (D-DVP-02).
type VPN struct {
	Request
	UserName, Name, Surname string
}

// Check validates a request as a whole. INVALID_FIELD with every invalid field.
func (d Deploy) Check() error {
	var ps fault.Problems
	legible.CheckName(&ps, "service_name", d.ServiceName)
	legible.CheckName(&ps, "original_service_name", d.OriginalServiceName)
	legible.CheckName(&ps, "build_number", d.BuildNumber)
	d.check(&ps)
	ps.Require(d.Minutes >= 1 && d.Minutes <= maxMinutes, "duration_minutes", "must be 1 to 525600")
	return fault.All(ps)
}

// Check is like Check of Deploy.
func (v VPN) Check() error {
	var ps fault.Problems
	legible.CheckName(&ps, "user_name", v.UserName)
	v.check(&ps)
	return fault.All(ps)
}

func (r Request) check(ps *fault.Problems) {
	legible.CheckName(ps, "type", r.Type)
	ps.Require(r.Status == Pending || r.Status == Approved || r.Status == Rejected, "status",
		"must be one of PENDING, APPROVED, REJECTED")
	ps.Require(utf8.RuneCountInString(r.Comment) <= maxCommentChars, "comment", "must have at most 2000 characters")
}
