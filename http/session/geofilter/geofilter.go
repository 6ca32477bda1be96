// Package geofilter serves section 4.21 of the interface, the countries from which the
// caller's account may be used. Adding and removing one start a challenge; every rule
// is in domain/session/geofilter, and requests are judged in http/auth.
//
// Start reading at Endpoints.
package geofilter

import (
	"cmp"
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/session/geofilter"
	"castellan/http/rest"
)

const section = "4.21 Geographic filter"

// Group serves the section.
type Group struct {
	Service *geofilter.Service
	// CDN is the address in front of /flags (D-GEO-03).
	CDN string
}

func (g Group) Endpoints() []rest.Endpoint {
	const path = "/user/geofilter/countries"
	return rest.Section(section,
		rest.Get(path, "List the allowed countries of the caller, oldest first",
			rest.User, g.list).
			Doc("listAllowedCountries", "An empty list allows all countries. Names and flags are for display; only "+
				"countryCode is compared."),
		rest.Start2FA("POST", path, "Add an allowed country after a challenge; all sessions end", rest.User,
			geofilter.ActionAdd, g.add,
			fault.InvalidField, fault.RecordAlreadyExist).
			Doc("addAllowedCountry",
				"Starts a challenge. When it is complete, the account can be used only from the listed countries, and all its "+
					"sessions end."),
		rest.Start2FA("DELETE", path, "Delete an allowed country after a challenge; all sessions end", rest.User,
			geofilter.ActionRemove, g.remove,
			fault.InvalidField, fault.RecordNotFound).
			Doc("removeAllowedCountry",
				"Starts a challenge. When it is complete, the country is removed and all sessions of the account end. Without "+
					"any listed country, the account can be used from everywhere."),
	)
}

// allowedCountry is the geo-filter country of section 2.7 of the interface.
type allowedCountry struct {
	ID           int64  `json:"id"`
	UserID       string `json:"userId"`
	CountryCode  string `json:"countryCode" doc:"ISO 3166-1 alpha-2"`
	CountryName  string `json:"countryName" doc:"in the requested language, otherwise the user's language"`
	CreatedAt    int64  `json:"createDateTimeStamp" doc:"epoch ms"`
	UpdatedAt    int64  `json:"updateDateTimeStamp" doc:"epoch ms"`
	FlagImage    string `json:"flagImage" doc:"address of an SVG"`
	IOSFlagImage string `json:"iosFlagImage" doc:"address of a PNG"`
	PNGFlagImage string `json:"pngFlagImage" doc:"address of a PNG"`
}

func (g Group) list(ctx context.Context, who rest.Caller, _ rest.None) ([]allowedCountry, error) {
	all, err := g.Service.Store.Countries(ctx, who.UserID)
	if err != nil {
		return nil, err
	}
	language := who.Language
	if !who.LanguageAsked && len(all) > 0 { // the user's own language precedes the default (D-GEN-16)
		u, err := g.Service.Users.Get(ctx, who.UserID)
		if err != nil {
			return nil, err
		}
		language = cmp.Or(u.Language, language)
	}
	out := make([]allowedCountry, len(all))
	for i, c := range all {
		flag := g.CDN + "/flags/" + c.Code
		out[i] = allowedCountry{ID: c.ID, UserID: c.UserID, CountryCode: c.Code, CountryName: geo.Name(c.Code,
			language),
			CreatedAt: c.CreatedAt.UnixMilli(), UpdatedAt: c.UpdatedAt.UnixMilli(), FlagImage: flag + ".svg",
			IOSFlagImage: flag + ".ios.png", PNGFlagImage: flag + ".png"}
	}
	return out, nil
}

type request struct {
	CountryCode string `json:"countryCode" doc:"ISO 3166-1 alpha-2, in either case" doc.pattern:"^[A-Za-z]{2}$"`
}

func (g Group) add(ctx context.Context, who rest.Caller, in request) (geofilter.Command, error) {
	return g.Service.PrepareAdd(ctx, who.UserID, in.CountryCode)
}

func (g Group) remove(ctx context.Context, who rest.Caller, in request) (geofilter.Command, error) {
	return g.Service.PrepareRemove(ctx, who.UserID, in.CountryCode)
}
