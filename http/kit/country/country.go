// Package country serves the list of countries, which is part of section 4.12 of the
// interface (D-USR-05).
package country

import (
	"context"

	"castellan/domain/kit/geo"
	"castellan/http/rest"
)

const section = "4.12 Users"

// Group serves the endpoint. CDN is the prefix of the paths of the flags, which the program serves itself.
type Group struct{ CDN string }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/admin/get-country-list", "List the countries of ISO 3166-1", rest.Tenant, g.list).
			Doc("listCountries", "Sorted by countryCode. Names are in the requested language."),
	)
}

type record struct {
	CountryCode string `json:"countryCode" doc:"ISO 3166-1 alpha-2"`
	CountryName string `json:"countryName"`
	PhoneCode   string `json:"phoneCode" doc:"dialling code, digits only; countries share some" example:"90"`
	FlagImage   string `json:"flagImage" doc:"address of an SVG"`
}

func (g Group) list(_ context.Context, who rest.Caller, _ rest.None) ([]record, error) {
	return rest.Each(geo.Codes(), func(code string) record {
		return record{code, geo.Name(code, who.Language), geo.DialCode(code), g.CDN + "/flags/" + code + ".svg"}
	}), nil
}
