// Package evidence serves an extension: the evidence of an approval (D-EXT-09).
package evidence

import (
	"context"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/proof/evidence"
	"castellan/http/rest"
)

const section = "Extensions: evidence"

// Group serves the section.
type Group struct {
	// Evidence is challenge.Store.Evidence.
	Evidence func(ctx context.Context, id string) (challenge.Insert, error)
	// Document unseals an intent.
	Document func(id string, sealed []byte) ([]byte, error)
	// Audit lists the rows of the audit.
	Audit func(ctx context.Context, q audit.Query, p page.Query[audit.Place]) (page.Of[audit.Stored], error)
	// Sign adds the statement of the service.
	Sign func(evidence.Evidence) (evidence.Evidence, error)
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/admin/challenges/{id}/evidence", "Get the evidence of a challenge", rest.Tenant, g.get,
			fault.RecordNotFound).
			Try("id=01JD3X4Q7V0S8D4T2M6B9N1ZKA", fault.RecordNotFound).
			Doc("getEvidence", "The document that was shown to the approver, the signatures of devices with their public "+
				"keys, the requirements, the outcome and its audit row, all signed by the service. It is kept as long as the "+
				"audit; when the audit row is archived before, the outcome is UNKNOWN. castellan intent verify checks it "+
				"offline."),
	).For(rest.Admin).Extended()
}

type oneRequest struct {
	ID string `json:"id" maxLength:"64"`
}

// maxRows is the number of audit rows of a challenge that are searched for the outcome.
const maxRows = 100

func (g Group) get(ctx context.Context, _ rest.Caller, in oneRequest) (out rest.Data[evidence.Evidence], err error) {
	c, err := g.Evidence(ctx, in.ID)
	if err != nil {
		return out, err
	}
	document, err := g.Document(c.ID, c.Intent)
	if err != nil {
		return out, err
	}
	rows, err := g.Audit(ctx, audit.Query{Target: c.ID}, page.Query[audit.Place]{Limit: maxRows})
	if err != nil {
		return out, err
	}
	var row *audit.Stored
	for i := range rows.Records {
		if rows.Records[i].Action == c.Action { // the newest is first, and the outcome is the last
			row = &rows.Records[i]
			break
		}
	}
	out.Data, err = g.Sign(evidence.Of(c.Challenge, document, row))
	return out, err
}
