// Package dropdown serves the options of dropdowns, which are part of section 4.15 of the interface (D-INF-01,
// D-INF-02), and their administration, an extension (D-INT-15).
package dropdown

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/people/dropdown"
	"castellan/http/rest"
)

const section = "4.15 Additional info and identity"

// Group serves the endpoints.
type Group struct{ Service *dropdown.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return append(rest.Section(section,
		rest.Get("/dropdown/get-parameter", "List dropdown options", rest.NoAuth, g.list, fault.InvalidField).
			Try("dropdownCode=SOURCE_OF_FUNDING&_requesterLanguage=tr").
			Doc("listDropdownOptions", "If both codes are sent, both must match; without codes, all options are listed. "+
				"Names are in the requested language, otherwise in English. Inactive options are not listed."),
	).For(rest.Public), g.administration()...)
}

type listRequest struct {
	Code         *string `json:"code" doc:"code of a dropdown or of an option" example:"SALARY"`
	DropdownCode *string `json:"dropdownCode" doc:"code of a dropdown" example:"SOURCE_OF_FUNDING"`
	// Language is read by the kit, as on every endpoint.
	Language *string `json:"_requesterLanguage" doc:"tr, en or ar" example:"tr"`
}

type dropdownOption struct {
	ID   int64  `json:"id"`
	Code string `json:"code" doc:"code of the dropdown" example:"SOURCE_OF_FUNDING"`
	Name string `json:"name" example:"Salary"`
	// IsExplainMandatory requires the explanation field beside the choice.
	IsExplainMandatory bool `json:"isExplainMandatory" doc:"whether the choice requires an explanation"`
}

func (g Group) list(ctx context.Context, who rest.Caller, in listRequest) ([]dropdownOption, error) {
	all, err := g.Service.Store.List(ctx, dropdown.Query{Group: in.DropdownCode, Code: in.Code})
	return rest.Each(all, func(o dropdown.Option) dropdownOption {
		return dropdownOption{o.ID, o.Group, o.Name(who.Language), o.ExplainMandatory}
	}), err
}
