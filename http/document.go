package httpapi

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"castellan/http/rest"
	"castellan/http/wire"
)

// Title is the name of the service in its documents.
const Title = "Castellan"

// description is the introduction of the document; each line is a paragraph.
const description = "Sessions, multi-factor challenges that guard operations, and their administration.\n\n" +
	"An operation that starts a challenge responds with {\"challenge\": …} and its token in the header p-auth. " +
	"The client completes the listed methods with completeChallenge until the response has execResult. The socket " +
	"/2fa (see /asyncapi.json) and getChallengeResult return the same outcome; with Prefer: wait=N, " +
	"getChallengeResult waits for it.\n\n" +
	"Errors are problem details (RFC 9457) with a stable code. Texts for users are in Turkish, English or Arabic, " +
	"selected by Accept-Language. The query parameters of a GET can also be sent as a JSON body; the query takes " +
	"precedence."

//go:embed tags.tsv
var tagTable string

// tags are the groups of the document in its order: the sections of the interface with their extensions.
var tags = func() (all []rest.Tag) {
	for _, row := range rest.Rows(tagTable) {
		all = append(all, rest.Tag{Area: row[0], Name: row[1], Sections: strings.Split(row[2], "; "), Description: row[3]})
	}
	return all
}()

// schemas holds the JSON Schemas that Go types cannot express. A section adds its
// schemas by a file schemas.json in its folder.
//
//go:embed */schemas.json */*/schemas.json
var schemas embed.FS

// examples are executed examples by operation id, packed. A test executes them and writes examples.json, which has them
// one on each line, and this file.
//
//go:embed examples.json.gz
var examples []byte

// Tags returns the names of the groups of the document, in its order.
func Tags() []string { return rest.Each(tags, func(t rest.Tag) string { return t.Name }) }

// OpenAPI renders the endpoints as an OpenAPI document. The server is the prefix of the paths, a URL or a path; empty
// for the root. With a tag, the document holds only its operations, and the components that they use.
func OpenAPI(version, server, tag string) ([]byte, error) {
	x := rest.Extra{Description: description, ServerURL: server, Tags: tags,
		Challenge: reflect.TypeFor[wire.ChallengeAnswer]()}
	endpoints := Endpoints()
	if tag != "" {
		x.Tags = slices.DeleteFunc(slices.Clone(tags), func(t rest.Tag) bool { return t.Name != tag })
		endpoints = slices.DeleteFunc(endpoints, func(e rest.Endpoint) bool {
			return !slices.ContainsFunc(x.Tags, func(t rest.Tag) bool { return slices.Contains(t.Sections, e.Section) })
		})
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(examples))
	if err == nil {
		err = json.NewDecoder(unpacked).Decode(&x.Examples)
	}
	if err != nil {
		return nil, fmt.Errorf("examples: %w", err)
	}
	for _, table := range sectionFiles(schemas, "schemas.json") {
		x.Schemas = append(x.Schemas, table)
	}
	return rest.OpenAPI(Title, version, endpoints, x)
}
