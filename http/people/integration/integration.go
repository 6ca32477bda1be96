// Package integration serves the endpoints for other services of the platform, such as a
// wallet, a screening service or a registration page. They use service-auth or the token of an
// administrator (D-INT-01 to D-INT-07).
//
// The data of an event, by its type (ids, states and amounts alone):
//
//	deposit.decided  depositId, externalId (where another service reported the deposit),
//	                 status, amount, currencyCode, network
//	account.status   status, previousStatus
//	kyc.decided      kycConfirm, previousKycConfirm, documentId
//
// Start reading at Events, the smallest of its groups.
package integration

import (
	"context"
	"slices"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/http/rest"
)

// section is the section of every endpoint of this package.
const section = "Extensions: integration"

// Events serves the feed of events for other services (D-INT-03).
type Events struct{ Store integration.Store }

func (g Events) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/integration/events", "List events, oldest first", rest.TenantOrService, g.list, fault.InvalidField,
			fault.InvalidState).
			Try("limit=10").
			Doc("listIntegrationEvents", "Send the cursor of the last response to continue. An event appears once, after "+
				"its cause is stored durably, and never before an already listed event. Events are kept for 90 days. After the "+
				"service was restored from a backup, a cursor that was issued after the backup is refused with 409. Then "+
				"continue with an older cursor, or without one, and compare the events with your records."),
	).For(rest.Admin).Extended()
}

type listRequest struct {
	Cursor *string  `json:"cursor" maxLength:"512" doc:"cursor of the last response; default: the oldest event"`
	Limit  int      `json:"limit" default:"200" minimum:"1" maximum:"1000" doc:"maximum number of records"`
	Types  []string `json:"types,omitempty" maxItems:"20" doc:"returns only these types"`
}

// Validate refuses a type that no event has.
func (in listRequest) Validate() error {
	for _, t := range in.Types {
		if !slices.Contains(integration.Types, integration.Type(t)) {
			return fault.Invalid("types", "has a type that no event has")
		}
	}
	return nil
}

// event is the wire shape of an event.
type event struct {
	ID        string            `json:"id" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Type      string            `json:"type" example:"withdrawal.queued"`
	UserID    string            `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Data      map[string]string `json:"data" schema:"IntegrationEventData"`
	CreatedAt rest.Time         `json:"createdAt"`
}

func show(e integration.Event) event {
	return event{e.ID, string(e.Type), e.UserID, e.Data, rest.Time{Time: e.At}}
}

func (g Events) list(ctx context.Context, _ rest.Caller, in listRequest) (rest.Feed[event], error) {
	q := integration.EventQuery{}
	for _, t := range in.Types {
		q.Types = append(q.Types, integration.Type(t))
	}
	return rest.Follow(ctx, rest.Or(in.Cursor, ""), in.Limit, q, g.Store.Events, show)
}
