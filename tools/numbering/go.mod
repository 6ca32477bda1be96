// The generator of the numbering plans of domain/kit/numbering. It is a module of its own, because the library that
// contains the metadata is used by nothing else.
module castellan/tools/numbering

go 1.26.8

require github.com/nyaruka/phonenumbers v1.8.1

require (
	golang.org/x/text v0.23.0 // indirect
	google.golang.org/protobuf v1.36.11 // indirect
)
