"""Work that the clock starts: the timetables of hooks, and jobs."""
