// Linked into sanitized MPI tests: takes the place of dlclose, so that what MPI loaded is still there when leaks are
// reported. In unloaded code they have no name, and no suppression could tell them from ours.
extern "C" int dlclose(void*) { return 0; }
